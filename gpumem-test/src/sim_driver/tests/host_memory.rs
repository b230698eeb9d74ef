use std::ffi::c_void;
use std::ptr;

use crate::sim_driver::bench::{Bench, call, free_bytes, malloc, ok};
use crate::sim_driver::{MemoryKind, memory_at};

#[test]
fn pinned_memory_is_the_hosts_and_takes_nothing_of_the_device() {
    let _bench = Bench::ready(1);
    let before = free_bytes();
    let mut host: *mut u8 = ptr::null_mut();
    for name in ["cuMemAllocHost_v2", "cuMemHostAlloc"] {
        if name == "cuMemHostAlloc" {
            ok(name, (&mut host, 64_usize << 20, 2_u32));
        } else {
            ok(name, (&mut host, 64_usize << 20));
        }
        assert_eq!(free_bytes(), before, "{name}");
        // SAFETY: the driver gave this memory.
        unsafe { host.add((64 << 20) - 1).write(7) };
        let found = memory_at(host as u64 + 9).unwrap();
        assert_eq!((found.kind, found.bytes), (MemoryKind::Pinned, 64 << 20));
        let device = malloc(8);
        let end = host as u64 + (64 << 20);
        ok("cuMemcpyHtoDAsync_v2", (device, end - 8, 8_usize, 0_u64));
        assert_eq!(call("cuMemcpyHtoD_v2", (device, end - 7, 8_usize)), 1);
        let mut back = [0_u8; 8];
        ok("cuMemcpyDtoH_v2", (back.as_mut_ptr(), device, 8_usize));
        assert_eq!(back[7], 7);
        ok("cuMemFree_v2", (device,));
        let (mut address, mut flags) = (0_u64, 0_u32);
        ok("cuMemHostGetDevicePointer_v2", (&mut address, host, 0_u32));
        assert_eq!(address, host as u64);
        ok("cuMemHostGetFlags", (&mut flags, host));
        assert_eq!(flags & 2, 2);
        assert_eq!(
            call("cuMemFree_v2", (host as u64,)),
            1,
            "{name} is not freed so"
        );
        assert_eq!(call("cuMemFreeHost", (host as u64 + 1,)), 1);
        ok("cuMemFreeHost", (host,));
        assert_eq!(memory_at(host as u64), None);
        assert_eq!(call("cuMemFreeHost", (host,)), 1);
    }
    ok("cuMemFreeHost", (ptr::null_mut::<c_void>(),));
    assert_eq!(call("cuMemAllocHost_v2", (&mut host, 0_usize)), 1);
    assert_eq!(call("cuMemAllocHost_v2", (&mut host, 1_usize << 60)), 2);
    assert_eq!(call("cuMemHostAlloc", (&mut host, 8_usize, 64_u32)), 1);
}

#[test]
fn the_programs_own_memory_can_be_registered_once() {
    let _bench = Bench::ready(1);
    let own = vec![3_u8; 10_000];
    let start = own.as_ptr() as u64;
    ok("cuMemHostRegister_v2", (start, 10_000_usize, 0_u32));
    assert_eq!(
        memory_at(start + 9_999).unwrap().kind,
        MemoryKind::Registered
    );
    assert_eq!(memory_at(start + 10_000), None);
    assert_eq!(
        call("cuMemHostRegister", (start + 500, 10_usize, 0_u32)),
        712
    );
    let mut kind = 0_u32;
    ok("cuPointerGetAttribute", (&mut kind, 2_i32, start));
    assert_eq!(kind, 1);
    // A device sets it under its own address.
    ok("cuMemsetD8_v2", (start + 10, 9_u8, 5_usize));
    assert_eq!((own[9], own[10], own[14], own[15]), (3, 9, 9, 3));
    ok("cuMemHostUnregister", (start,));
    assert_eq!(call("cuMemHostUnregister", (start,)), 713);
    assert_eq!(call("cuMemsetD8_v2", (start, 9_u8, 5_usize)), 1);
}
