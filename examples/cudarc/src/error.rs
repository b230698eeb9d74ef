//! What can go wrong.

use cudarc::cublas::result::CublasError;
use cudarc::cublas::sys::cublasStatus_t;
use cudarc::curand::result::CurandError;
use cudarc::curand::sys::curandStatus_t;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use cudarc::nvrtc::CompileError;

/// A failed call, by the library that it went to.
#[derive(Debug)]
pub enum Error {
    /// The driver.
    Driver(DriverError),
    /// The run-time compiler.
    Compile(CompileError),
    /// cuBLAS.
    Blas(CublasError),
    /// cuRAND.
    Rand(CurandError),
}

impl Error {
    /// Whether the card was too small.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Driver(error) => error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            Self::Compile(_) => false,
            Self::Blas(error) => error.0 == cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED,
            Self::Rand(error) => error.0 == curandStatus_t::CURAND_STATUS_ALLOCATION_FAILED,
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Driver(_) => f.write_str("a call of the driver failed"),
            Self::Compile(_) => f.write_str("the kernels do not compile"),
            Self::Blas(_) => f.write_str("a call of cuBLAS failed"),
            Self::Rand(_) => f.write_str("a call of cuRAND failed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Driver(error) => error,
            Self::Compile(error) => error,
            Self::Blas(error) => error,
            Self::Rand(error) => error,
        })
    }
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Self {
        Self::Compile(error)
    }
}

impl From<CublasError> for Error {
    fn from(error: CublasError) -> Self {
        Self::Blas(error)
    }
}

impl From<CurandError> for Error {
    fn from(error: CurandError) -> Self {
        Self::Rand(error)
    }
}
