use super::{MIB, Section};
use crate::sim_driver::bench::{call, free_bytes, malloc, ok, stream};

/// `CUDA_ARRAY_DESCRIPTOR` of floats.
fn floats(width: usize, height: usize) -> (usize, usize, i32, u32) {
    (width, height, 0x20, 1)
}

fn array(width: usize, height: usize) -> u64 {
    let mut array = 0_u64;
    ok("cuArrayCreate_v2", (&mut array, &floats(width, height)));
    array
}

#[test]
fn arrays_take_what_was_recorded() {
    let mut section = Section::new("arrays");
    for (width, height) in [(1, 0), (128, 128), (512, 512), (1024, 768), (2048, 2048)] {
        let made = array(width, height);
        section.gone(format!("array of {width} x {height} floats"));
        let mut needs = [0_u64; 4];
        let code = call("cuArrayGetMemoryRequirements", (&mut needs, made, 0_i32));
        let [bytes, alignment, ..] = needs;
        section.say(
            format!("requirements of {width} x {height}"),
            format!("{bytes},{alignment},code:{code}"),
        );
        ok("cuArrayDestroy", (made,));
        section.gone("destroyed");
    }
    let small: Vec<u64> = (0..100).map(|_| array(16, 16)).collect();
    section.gone("100 arrays of 16 x 16 floats");
    for made in small {
        ok("cuArrayDestroy", (made,));
    }
    let (mut mipmap, solid) = (
        0_u64,
        (1024_usize, 1024_usize, 0_usize, 0x20_i32, 1_u32, 0_u32),
    );
    ok("cuMipmappedArrayCreate", (&mut mipmap, &solid, 4_u32));
    section.gone("mipmap of 1024 x 1024 floats, 4 levels");
    ok("cuMipmappedArrayDestroy", (mipmap,));
    section.agree();
}

#[test]
fn managed_memory_is_committed_as_recorded() {
    let mut section = Section::new("managed");
    let (bytes, page) = (64 * MIB as usize, 2 * MIB);
    let mut address = 0_u64;
    ok("cuMemAllocManaged", (&mut address, bytes, 1_u32));
    section.gone("64 MiB managed");
    ok("cuMemsetD8_v2", (address + page - 1, 1_u8, 2_usize));
    section.gone("2 bytes set over a page boundary");
    let host = vec![0_u8; MIB as usize];
    ok(
        "cuMemcpyHtoD_v2",
        (address + 32 * MIB, host.as_ptr(), host.len()),
    );
    section.gone("1 MiB copied to it");
    for (name, location) in [("device", [1_i32, 0]), ("host", [2, 0])] {
        let code = call(
            "cuMemPrefetchAsync_v2",
            (address, bytes, location, 0_u32, 0_u64),
        );
        section.gone(format!("prefetched to the {name}, code {code}"));
    }
    ok("cuMemFree_v2", (address,));
    section.gone("freed");
    section.agree();
}

/// `CUmemAllocationProp` of pages on the device.
pub(super) fn on_device() -> [u64; 4] {
    [1, 1, 0, 0]
}

#[test]
fn pages_take_what_a_pool_holds_and_does_not_use() {
    let mut section = Section::new("pressure");
    // `CUmemPoolProps`: pinned memory of the device.
    let properties = [1_u64, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut pool, mut address) = (0_u64, 0_u64);
    ok("cuMemPoolCreate", (&mut pool, &properties));
    ok("cuMemPoolSetAttribute", (pool, 4_i32, &u64::MAX));
    let own = stream(1);
    let bytes = 1024 * MIB as usize;
    ok("cuMemAllocFromPoolAsync", (&mut address, bytes, pool, own));
    ok("cuMemFreeAsync", (address, own));
    ok("cuStreamSynchronize", (own,));
    malloc((free_bytes().0 / MIB as usize - 300) * MIB as usize);
    section.gone("filled");
    let (mut pages, mut array) = (0_u64, 0_u64);
    section.code(
        "pages of 512 MiB",
        "cuMemCreate",
        (&mut pages, 512 * MIB as usize, &on_device(), 0_u64),
    );
    section.gone("with pages");
    let large = floats(16_384, 8_192);
    section.code("array of 512 MiB", "cuArrayCreate_v2", (&mut array, &large));
    section.gone("with the array");
    section.agree();
}
