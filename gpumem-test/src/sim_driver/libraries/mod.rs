//! Stand-ins for the vendor's libraries over the simulated driver.
//!
//! They take the device memory that the real ones take, check their handles, and count their
//! kernels as launches; they compute nothing. What they take was measured on an H200 (driver
//! 580.159, CUDA 13.0) and is assumed for other cards. A library or a function that is not here is
//! "not found".

#[macro_use]
mod export;

mod cublas;
mod cublaslt;
mod cudnn;
mod curand;
mod nvml;
mod nvrtc;
mod workspace;

#[cfg(test)]
mod tests;

use super::Function;

/// A library that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Cublas,
    CublasLt,
    Cudnn,
    Curand,
    Nvml,
    Nvrtc,
}

/// What the names of each library's files begin with; a version may follow.
const FILES: [(&[u8], Library); 6] = [
    (b"libcublas.so", Library::Cublas),
    (b"libcublasLt.so", Library::CublasLt),
    (b"libcudnn.so", Library::Cudnn),
    (b"libcurand.so", Library::Curand),
    (b"libnvidia-ml.so", Library::Nvml),
    (b"libnvrtc.so", Library::Nvrtc),
];

/// The library of a file name without its folder, if it is simulated.
pub(crate) fn library(base_name: &[u8]) -> Option<Library> {
    FILES
        .iter()
        .find(|(start, _)| base_name.starts_with(start))
        .map(|(_, library)| *library)
}

/// A library's function of a name, if it is simulated.
pub(crate) fn library_function(library: Library, name: &str) -> Option<Function> {
    match library {
        Library::Cublas => cublas::lookup(name).or_else(|| cublas::lookup_kernel(name)),
        Library::CublasLt => cublaslt::lookup(name),
        Library::Cudnn => cudnn::lookup(name).or_else(|| cudnn::lookup_alike(name)),
        Library::Curand => curand::lookup(name),
        Library::Nvml => nvml::lookup(name),
        Library::Nvrtc => nvrtc::lookup(name),
    }
}
