//! cuRAND: generators with the real one's memory. The numbers are not made: device memory stays as
//! it was.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::export::{Answer, LibraryStatus, put};
use super::workspace::Workspace;
use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::objects::{Objects, lock};
use crate::sim_driver::{launch, reach};

// Numbers of `curandStatus_t`.
const NOT_INITIALIZED: LibraryStatus = LibraryStatus(101);
const ALLOCATION_FAILED: LibraryStatus = LibraryStatus(102);
const TYPE_ERROR: LibraryStatus = LibraryStatus(103);
const OUT_OF_RANGE: LibraryStatus = LibraryStatus(104);
const LENGTH_NOT_MULTIPLE: LibraryStatus = LibraryStatus(105);
const LAUNCH_FAILURE: LibraryStatus = LibraryStatus(201);
const INITIALIZATION_FAILED: LibraryStatus = LibraryStatus(203);
const INTERNAL_ERROR: LibraryStatus = LibraryStatus(999);

/// Bytes that a generator takes with `cuMemAlloc` when it first makes numbers or seeds.
///
/// Source: `curandGenerateUniform` of CUDA 13.0 on an H200, seen through the door; assumed for
/// other cards and kinds of generators.
const TAKEN: [usize; 1] = [196_608];

/// CUDA 13.0's.
const VERSION: c_int = 10_400;

static GENERATORS: Objects<Arc<Generator>> = Objects::new();

#[derive(Debug)]
struct Generator {
    /// Whether it makes pseudo-random numbers, which come in pairs when normally distributed.
    pseudo: bool,
    stream: AtomicU64,
    workspace: Mutex<Workspace>,
}

fn of(generator: Handle) -> Result<Arc<Generator>, LibraryStatus> {
    GENERATORS.get(generator).ok_or(NOT_INITIALIZED)
}

impl Generator {
    /// Takes its memory, if it has none yet.
    fn prepare(&self) -> Answer {
        let mut workspace = lock(&self.workspace);
        if workspace.is_empty() {
            *workspace = Workspace::take(&TAKEN).map_err(|_| ALLOCATION_FAILED)?;
        }
        Ok(())
    }
}

fn work(generator: &Generator) -> Answer {
    generator.prepare()?;
    let stream = generator.stream.load(Ordering::Relaxed);
    launch::issue_of_library(stream).map_err(|_| LAUNCH_FAILURE)
}

fn in_pairs(generator: Handle, count: usize) -> Answer {
    let generator = of(generator)?;
    if generator.pseudo && !count.is_multiple_of(2) {
        return Err(LENGTH_NOT_MULTIPLE);
    }
    work(&generator)
}

library_functions! { INTERNAL_ERROR;
    fn curandCreateGenerator(generator: *mut Handle, kind: c_int) {
        let pseudo = match kind {
            100 | 101 | 121 | 141 | 142 | 161 => true,
            200..=204 => false,
            _ => return Err(TYPE_ERROR),
        };
        reach::device().map_err(|_| INITIALIZATION_FAILED)?;
        let made = GENERATORS.add(Arc::new(Generator {
            pseudo,
            stream: AtomicU64::new(0),
            workspace: Mutex::default(),
        }));
        put(generator, made, NOT_INITIALIZED)
    }

    fn curandDestroyGenerator(generator: Handle) {
        let generator = GENERATORS.remove(generator).ok_or(NOT_INITIALIZED)?;
        let workspace = std::mem::take(&mut *lock(&generator.workspace));
        workspace.give();
        Ok(())
    }

    fn curandGetVersion(version: *mut c_int) {
        put(version, VERSION, OUT_OF_RANGE)
    }

    fn curandSetStream(generator: Handle, stream: Handle) {
        of(generator)?.stream.store(stream, Ordering::Relaxed);
        Ok(())
    }

    fn curandSetPseudoRandomGeneratorSeed(generator: Handle, _seed: u64) {
        if of(generator)?.pseudo { Ok(()) } else { Err(TYPE_ERROR) }
    }

    fn curandSetGeneratorOffset(generator: Handle, _offset: u64) {
        of(generator).map(drop)
    }

    fn curandSetGeneratorOrdering(generator: Handle, _order: c_int) {
        of(generator).map(drop)
    }

    fn curandSetQuasiRandomGeneratorDimensions(generator: Handle, dimensions: u32) {
        match (of(generator)?.pseudo, dimensions) {
            (true, _) => Err(TYPE_ERROR),
            (false, 1..=20_000) => Ok(()),
            (false, _) => Err(OUT_OF_RANGE),
        }
    }

    fn curandGenerateSeeds(generator: Handle) {
        of(generator)?.prepare()
    }

    fn curandGenerate(generator: Handle, _into: DevicePtr, _count: usize) {
        work(&*of(generator)?)
    }

    fn curandGenerateLongLong(generator: Handle, _into: DevicePtr, _count: usize) {
        let generator = of(generator)?;
        if generator.pseudo {
            return Err(TYPE_ERROR); // only some quasi-random kinds have 64 bits
        }
        work(&generator)
    }

    fn curandGenerateUniform(generator: Handle, _into: DevicePtr, _count: usize) {
        work(&*of(generator)?)
    }

    fn curandGenerateUniformDouble(generator: Handle, _into: DevicePtr, _count: usize) {
        work(&*of(generator)?)
    }

    fn curandGenerateNormal(
        generator: Handle,
        _into: DevicePtr,
        count: usize,
        _mean: f32,
        _deviation: f32,
    ) {
        in_pairs(generator, count)
    }

    fn curandGenerateNormalDouble(
        generator: Handle,
        _into: DevicePtr,
        count: usize,
        _mean: f64,
        _deviation: f64,
    ) {
        in_pairs(generator, count)
    }

    fn curandGenerateLogNormal(
        generator: Handle,
        _into: DevicePtr,
        count: usize,
        _mean: f32,
        _deviation: f32,
    ) {
        in_pairs(generator, count)
    }

    fn curandGenerateLogNormalDouble(
        generator: Handle,
        _into: DevicePtr,
        count: usize,
        _mean: f64,
        _deviation: f64,
    ) {
        in_pairs(generator, count)
    }

    fn curandGeneratePoisson(
        generator: Handle,
        _into: DevicePtr,
        _count: usize,
        mean: f64,
    ) {
        if mean.is_nan() || mean <= 0.0 {
            return Err(OUT_OF_RANGE);
        }
        work(&*of(generator)?)
    }

    fn curandGetProperty(kind: c_int, value: *mut c_int) {
        match kind {
            0 => put(value, VERSION / 1000, OUT_OF_RANGE),
            1 => put(value, VERSION / 100 % 10, OUT_OF_RANGE),
            2 => put(value, VERSION % 100, OUT_OF_RANGE),
            _ => Err(OUT_OF_RANGE),
        }
    }

}
