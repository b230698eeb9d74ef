//! A table in memory taken straight from `cuMemAlloc`, as code does that shares it with C.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaSlice, DevicePtrMut, result};

use crate::{Engine, Error};

/// `rows` vectors of `width` numbers.
pub struct Embeddings {
    context: Arc<CudaContext>,
    address: CUdeviceptr,
    rows: usize,
    width: usize,
}

impl Embeddings {
    /// A table of zeros.
    ///
    /// # Errors
    /// Out of memory.
    pub fn zeros(engine: &Engine, rows: usize, width: usize) -> Result<Self, Error> {
        engine.context.bind_to_thread()?;
        let bytes = rows * width * size_of::<f32>();
        // SAFETY: the memory is set to zeros before anything reads it, and freed by `drop`.
        let address = unsafe { result::malloc_sync(bytes)? };
        let table = Self {
            context: Arc::clone(&engine.context),
            address,
            rows,
            width,
        };
        // SAFETY: the allocation has that many bytes.
        unsafe { result::memset_d8_sync(address, 0, bytes)? };
        Ok(table)
    }

    /// Writes one vector.
    ///
    /// # Errors
    /// If the copy fails.
    ///
    /// # Panics
    /// If there is no such row, or the vector has another width.
    pub fn set(&mut self, row: usize, vector: &[f32]) -> Result<(), Error> {
        assert_eq!(vector.len(), self.width, "a vector of the table's width");
        self.context.bind_to_thread()?;
        // SAFETY: the row lies in the table, by `address_of`.
        unsafe { result::memcpy_htod_sync(self.address_of(row), vector)? };
        Ok(())
    }

    /// The vectors of `rows`, one behind the other, in a buffer on the engine's stream.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// # Panics
    /// If a row is not in the table.
    pub fn gather(&self, engine: &Engine, rows: &[usize]) -> Result<CudaSlice<f32>, Error> {
        let stream = &engine.stream;
        let mut gathered = stream.alloc_zeros::<f32>(rows.len() * self.width)?;
        for (place, row) in rows.iter().enumerate() {
            let mut to = gathered.slice_mut(place * self.width..(place + 1) * self.width);
            let (to, _written) = to.device_ptr_mut(stream);
            let bytes = self.width * size_of::<f32>();
            // SAFETY: both ranges have `width` numbers and are in different allocations.
            unsafe {
                result::memcpy_dtod_async(to, self.address_of(*row), bytes, stream.cu_stream())?;
            }
        }
        Ok(gathered)
    }

    /// A gathered batch on the host.
    ///
    /// # Errors
    /// If the copy fails.
    pub fn read(&self, engine: &Engine, gathered: &CudaSlice<f32>) -> Result<Vec<f32>, Error> {
        let values = engine.stream.clone_dtoh(gathered)?;
        engine.stream.synchronize()?;
        Ok(values)
    }

    fn address_of(&self, row: usize) -> CUdeviceptr {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.address + (row * self.width * size_of::<f32>()) as CUdeviceptr
    }
}

impl Drop for Embeddings {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: the address is ours, and nobody can name it any more.
        let freed = unsafe { result::free_sync(self.address) };
        self.context.record_err(freed);
    }
}
