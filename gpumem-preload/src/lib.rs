//! The door as a shared library, for programs that are no Rust test: Python, C.
//!
//! `GPUMEM_PRELOAD=FOLDER LD_PRELOAD=libgpumem_preload.so PROGRAM` leaves the summary of each
//! process that called the driver in FOLDER. The functions that stand before the loader's and the
//! driver's are gpumem-test's, exported from here.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)] // The loader calls what stands in this section.
mod constructor {
    /// Called by the loader when it has loaded the library, before the program's `main`.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static START: extern "C" fn() = start;

    extern "C" fn start() {
        gpumem_test::__private::preload::start();
    }
}
