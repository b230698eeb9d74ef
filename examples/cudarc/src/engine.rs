//! The card, the kernels and cuBLAS.

use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream};
use cudarc::nvrtc::compile_ptx;

use crate::Error;

/// One card, ready to work on its default stream.
pub struct Engine {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) kernels: Kernels,
    pub(crate) blas: CudaBlas,
}

/// The functions of `kernels.cu`.
pub(crate) struct Kernels {
    pub(crate) narrow: CudaFunction,
    pub(crate) widen: CudaFunction,
    pub(crate) relu: CudaFunction,
    pub(crate) scale: CudaFunction,
    pub(crate) add: CudaFunction,
    pub(crate) append: CudaFunction,
    pub(crate) advance: CudaFunction,
    pub(crate) count_positive: CudaFunction,
}

impl Engine {
    /// Opens the card and compiles the kernels. cuBLAS takes its work space here.
    ///
    /// # Errors
    /// If there is no such card, or it has too little memory.
    pub fn new(ordinal: usize) -> Result<Self, Error> {
        let context = CudaContext::new(ordinal)?;
        let stream = context.default_stream();
        let module = context.load_module(compile_ptx(include_str!("kernels.cu"))?)?;
        let kernels = Kernels {
            narrow: module.load_function("narrow")?,
            widen: module.load_function("widen")?,
            relu: module.load_function("relu")?,
            scale: module.load_function("scale")?,
            add: module.load_function("add")?,
            append: module.load_function("append")?,
            advance: module.load_function("advance")?,
            count_positive: module.load_function("count_positive")?,
        };
        let blas = CudaBlas::new(Arc::clone(&stream))?;
        Ok(Self {
            context,
            stream,
            kernels,
            blas,
        })
    }

    /// Bytes of the card that nobody has, and all bytes of it.
    ///
    /// # Errors
    /// If the driver does not say.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        Ok(self.context.mem_get_info()?)
    }

    /// Waits for all streams.
    ///
    /// # Errors
    /// If earlier work failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        Ok(self.context.synchronize()?)
    }
}

/// A number of elements as the kernels take it.
///
/// # Panics
/// If it does not fit: no buffer here is that long.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).expect("buffers have fewer than 2^32 elements")
}
