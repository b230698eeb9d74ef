//! Tensor maps: descriptors for kernels, which do not run. Their 128 bytes are zeros.

use std::ffi::{c_int, c_void};

use super::export::put;

type TensorMap = [u64; 16];

driver_functions! {
    fn cuTensorMapEncodeTiled(
        map: *mut TensorMap,
        _kind: c_int,
        _rank: u32,
        _address: *mut c_void,
        _extents: *const u64,
        _strides: *const u64,
        _box_extents: *const u32,
        _element_strides: *const u32,
        _interleave: c_int,
        _swizzle: c_int,
        _promotion: c_int,
        _fill: c_int,
    ) {
        put(map, [0; 16])
    }

    fn cuTensorMapEncodeIm2col(
        map: *mut TensorMap,
        _kind: c_int,
        _rank: u32,
        _address: *mut c_void,
        _extents: *const u64,
        _strides: *const u64,
        _lower: *const c_int,
        _upper: *const c_int,
        _channels: u32,
        _pixels: u32,
        _element_strides: *const u32,
        _interleave: c_int,
        _swizzle: c_int,
        _promotion: c_int,
        _fill: c_int,
    ) {
        put(map, [0; 16])
    }

    fn cuTensorMapEncodeIm2colWide(
        map: *mut TensorMap,
        _kind: c_int,
        _rank: u32,
        _address: *mut c_void,
        _extents: *const u64,
        _strides: *const u64,
        _lower: c_int,
        _upper: c_int,
        _channels: u32,
        _pixels: u32,
        _element_strides: *const u32,
        _interleave: c_int,
        _mode: c_int,
        _swizzle: c_int,
        _promotion: c_int,
        _fill: c_int,
    ) {
        put(map, [0; 16])
    }

    fn cuTensorMapReplaceAddress(map: *mut TensorMap, _address: *mut c_void) {
        put(map, [0; 16])
    }
}
