//! Every exported function of the driver, once, and what the door does with it.
//!
//! Names, slots, trampolines, the exported definitions of the feature `direct` and the list in
//! `docs/door.md` come from here. The rows are sorted by name, as ASCII.

use std::ffi::CStr;

/// Hands the rows to a macro: `name way` each.
///
/// - `forward`: callers reach the driver's own function.
/// - `hook`: while a session is open, callers reach the function of this name in `hooks`.
/// - `lookup`: always ours, since it hands out other functions.
///
/// Source: the functions that libcuda.so.1 of driver 580 (CUDA 13.0) exports and `cuda.h` of 13.0
/// declares, older names included.
macro_rules! for_each_symbol {
    ($use:ident) => {
        $use! {
            cuArray3DCreate forward,
            cuArray3DCreate_v2 hook,
            cuArray3DGetDescriptor forward,
            cuArray3DGetDescriptor_v2 forward,
            cuArrayCreate forward,
            cuArrayCreate_v2 hook,
            cuArrayDestroy hook,
            cuArrayGetDescriptor forward,
            cuArrayGetDescriptor_v2 forward,
            cuArrayGetMemoryRequirements forward,
            cuArrayGetPlane forward,
            cuArrayGetSparseProperties forward,
            cuCheckpointProcessCheckpoint forward,
            cuCheckpointProcessGetRestoreThreadId forward,
            cuCheckpointProcessGetState forward,
            cuCheckpointProcessLock forward,
            cuCheckpointProcessRestore forward,
            cuCheckpointProcessUnlock forward,
            cuCoredumpGetAttribute forward,
            cuCoredumpGetAttributeGlobal forward,
            cuCoredumpSetAttribute forward,
            cuCoredumpSetAttributeGlobal forward,
            cuCtxAttach forward,
            cuCtxCreate hook,
            cuCtxCreate_v2 hook,
            cuCtxCreate_v3 hook,
            cuCtxCreate_v4 hook,
            cuCtxDestroy hook,
            cuCtxDestroy_v2 hook,
            cuCtxDetach forward,
            cuCtxDisablePeerAccess forward,
            cuCtxEnablePeerAccess forward,
            cuCtxFromGreenCtx forward,
            cuCtxGetApiVersion forward,
            cuCtxGetCacheConfig forward,
            cuCtxGetCurrent forward,
            cuCtxGetDevResource forward,
            cuCtxGetDevice forward,
            cuCtxGetDevice_v2 forward,
            cuCtxGetExecAffinity forward,
            cuCtxGetFlags forward,
            cuCtxGetId forward,
            cuCtxGetLimit forward,
            cuCtxGetSharedMemConfig forward,
            cuCtxGetStreamPriorityRange forward,
            cuCtxPopCurrent forward,
            cuCtxPopCurrent_v2 forward,
            cuCtxPushCurrent forward,
            cuCtxPushCurrent_v2 forward,
            cuCtxRecordEvent forward,
            cuCtxResetPersistingL2Cache forward,
            cuCtxSetCacheConfig forward,
            cuCtxSetCurrent forward,
            cuCtxSetFlags forward,
            cuCtxSetLimit forward,
            cuCtxSetSharedMemConfig forward,
            cuCtxSynchronize hook,
            cuCtxSynchronize_v2 hook,
            cuCtxWaitEvent forward,
            cuDestroyExternalMemory hook,
            cuDestroyExternalSemaphore forward,
            cuDevResourceGenerateDesc forward,
            cuDevSmResourceSplitByCount forward,
            cuDeviceCanAccessPeer forward,
            cuDeviceComputeCapability forward,
            cuDeviceGet forward,
            cuDeviceGetAttribute forward,
            cuDeviceGetByPCIBusId forward,
            cuDeviceGetCount forward,
            cuDeviceGetDefaultMemPool forward,
            cuDeviceGetDevResource forward,
            cuDeviceGetExecAffinitySupport forward,
            cuDeviceGetGraphMemAttribute forward,
            cuDeviceGetHostAtomicCapabilities forward,
            cuDeviceGetLuid forward,
            cuDeviceGetMemPool forward,
            cuDeviceGetName forward,
            cuDeviceGetNvSciSyncAttributes forward,
            cuDeviceGetP2PAtomicCapabilities forward,
            cuDeviceGetP2PAttribute forward,
            cuDeviceGetPCIBusId forward,
            cuDeviceGetProperties forward,
            cuDeviceGetTexture1DLinearMaxWidth forward,
            cuDeviceGetUuid forward,
            cuDeviceGetUuid_v2 forward,
            cuDeviceGraphMemTrim hook,
            cuDevicePrimaryCtxGetState forward,
            cuDevicePrimaryCtxRelease forward,
            cuDevicePrimaryCtxRelease_v2 forward,
            cuDevicePrimaryCtxReset hook,
            cuDevicePrimaryCtxReset_v2 hook,
            cuDevicePrimaryCtxRetain forward,
            cuDevicePrimaryCtxSetFlags forward,
            cuDevicePrimaryCtxSetFlags_v2 forward,
            cuDeviceRegisterAsyncNotification forward,
            cuDeviceSetGraphMemAttribute forward,
            cuDeviceSetMemPool hook,
            cuDeviceTotalMem forward,
            cuDeviceTotalMem_v2 hook,
            cuDeviceUnregisterAsyncNotification forward,
            cuDriverGetVersion forward,
            cuEventCreate forward,
            cuEventDestroy hook,
            cuEventDestroy_v2 hook,
            cuEventElapsedTime forward,
            cuEventElapsedTime_v2 forward,
            cuEventQuery forward,
            cuEventRecord hook,
            cuEventRecordWithFlags hook,
            cuEventRecordWithFlags_ptsz hook,
            cuEventRecord_ptsz hook,
            cuEventSynchronize hook,
            cuExternalMemoryGetMappedBuffer hook,
            cuExternalMemoryGetMappedMipmappedArray forward,
            cuFlushGPUDirectRDMAWrites forward,
            cuFuncGetAttribute forward,
            cuFuncGetModule forward,
            cuFuncGetName forward,
            cuFuncGetParamInfo forward,
            cuFuncIsLoaded forward,
            cuFuncLoad forward,
            cuFuncSetAttribute forward,
            cuFuncSetBlockShape forward,
            cuFuncSetCacheConfig forward,
            cuFuncSetSharedMemConfig forward,
            cuFuncSetSharedSize forward,
            cuGetErrorName forward,
            cuGetErrorString forward,
            cuGetExportTable lookup,
            cuGetProcAddress lookup,
            cuGetProcAddress_v2 lookup,
            cuGetProcAddress_v2_ptsz lookup,
            cuGraphAddBatchMemOpNode forward,
            cuGraphAddChildGraphNode forward,
            cuGraphAddDependencies forward,
            cuGraphAddDependencies_v2 forward,
            cuGraphAddEmptyNode forward,
            cuGraphAddEventRecordNode forward,
            cuGraphAddEventWaitNode forward,
            cuGraphAddExternalSemaphoresSignalNode forward,
            cuGraphAddExternalSemaphoresWaitNode forward,
            cuGraphAddHostNode forward,
            cuGraphAddKernelNode forward,
            cuGraphAddKernelNode_v2 forward,
            cuGraphAddMemAllocNode hook,
            cuGraphAddMemFreeNode forward,
            cuGraphAddMemcpyNode forward,
            cuGraphAddMemsetNode forward,
            cuGraphAddNode hook,
            cuGraphAddNode_v2 hook,
            cuGraphBatchMemOpNodeGetParams forward,
            cuGraphBatchMemOpNodeSetParams forward,
            cuGraphChildGraphNodeGetGraph forward,
            cuGraphClone forward,
            cuGraphConditionalHandleCreate forward,
            cuGraphCreate forward,
            cuGraphDebugDotPrint forward,
            cuGraphDestroy forward,
            cuGraphDestroyNode forward,
            cuGraphEventRecordNodeGetEvent forward,
            cuGraphEventRecordNodeSetEvent forward,
            cuGraphEventWaitNodeGetEvent forward,
            cuGraphEventWaitNodeSetEvent forward,
            cuGraphExecBatchMemOpNodeSetParams forward,
            cuGraphExecChildGraphNodeSetParams forward,
            cuGraphExecDestroy hook,
            cuGraphExecEventRecordNodeSetEvent forward,
            cuGraphExecEventWaitNodeSetEvent forward,
            cuGraphExecExternalSemaphoresSignalNodeSetParams forward,
            cuGraphExecExternalSemaphoresWaitNodeSetParams forward,
            cuGraphExecGetFlags forward,
            cuGraphExecHostNodeSetParams forward,
            cuGraphExecKernelNodeSetParams forward,
            cuGraphExecKernelNodeSetParams_v2 forward,
            cuGraphExecMemcpyNodeSetParams forward,
            cuGraphExecMemsetNodeSetParams forward,
            cuGraphExecNodeSetParams forward,
            cuGraphExecUpdate forward,
            cuGraphExecUpdate_v2 forward,
            cuGraphExternalSemaphoresSignalNodeGetParams forward,
            cuGraphExternalSemaphoresSignalNodeSetParams forward,
            cuGraphExternalSemaphoresWaitNodeGetParams forward,
            cuGraphExternalSemaphoresWaitNodeSetParams forward,
            cuGraphGetEdges forward,
            cuGraphGetEdges_v2 forward,
            cuGraphGetNodes forward,
            cuGraphGetRootNodes forward,
            cuGraphHostNodeGetParams forward,
            cuGraphHostNodeSetParams forward,
            cuGraphInstantiate hook,
            cuGraphInstantiateWithFlags hook,
            cuGraphInstantiateWithParams hook,
            cuGraphInstantiateWithParams_ptsz hook,
            cuGraphInstantiate_v2 hook,
            cuGraphKernelNodeCopyAttributes forward,
            cuGraphKernelNodeGetAttribute forward,
            cuGraphKernelNodeGetParams forward,
            cuGraphKernelNodeGetParams_v2 forward,
            cuGraphKernelNodeSetAttribute forward,
            cuGraphKernelNodeSetParams forward,
            cuGraphKernelNodeSetParams_v2 forward,
            cuGraphLaunch hook,
            cuGraphLaunch_ptsz hook,
            cuGraphMemAllocNodeGetParams forward,
            cuGraphMemFreeNodeGetParams forward,
            cuGraphMemcpyNodeGetParams forward,
            cuGraphMemcpyNodeSetParams forward,
            cuGraphMemsetNodeGetParams forward,
            cuGraphMemsetNodeSetParams forward,
            cuGraphNodeFindInClone forward,
            cuGraphNodeGetDependencies forward,
            cuGraphNodeGetDependencies_v2 forward,
            cuGraphNodeGetDependentNodes forward,
            cuGraphNodeGetDependentNodes_v2 forward,
            cuGraphNodeGetEnabled forward,
            cuGraphNodeGetType forward,
            cuGraphNodeSetEnabled forward,
            cuGraphNodeSetParams forward,
            cuGraphReleaseUserObject forward,
            cuGraphRemoveDependencies forward,
            cuGraphRemoveDependencies_v2 forward,
            cuGraphRetainUserObject forward,
            cuGraphUpload hook,
            cuGraphUpload_ptsz hook,
            cuGraphicsMapResources forward,
            cuGraphicsMapResources_ptsz forward,
            cuGraphicsResourceGetMappedMipmappedArray forward,
            cuGraphicsResourceGetMappedPointer forward,
            cuGraphicsResourceGetMappedPointer_v2 forward,
            cuGraphicsResourceSetMapFlags forward,
            cuGraphicsResourceSetMapFlags_v2 forward,
            cuGraphicsSubResourceGetMappedArray forward,
            cuGraphicsUnmapResources forward,
            cuGraphicsUnmapResources_ptsz forward,
            cuGraphicsUnregisterResource forward,
            cuGreenCtxCreate forward,
            cuGreenCtxDestroy forward,
            cuGreenCtxGetDevResource forward,
            cuGreenCtxGetId forward,
            cuGreenCtxRecordEvent forward,
            cuGreenCtxStreamCreate forward,
            cuGreenCtxWaitEvent forward,
            cuImportExternalMemory hook,
            cuImportExternalSemaphore forward,
            cuInit forward,
            cuIpcCloseMemHandle hook,
            cuIpcGetEventHandle forward,
            cuIpcGetMemHandle hook,
            cuIpcOpenEventHandle forward,
            cuIpcOpenMemHandle hook,
            cuIpcOpenMemHandle_v2 hook,
            cuKernelGetAttribute forward,
            cuKernelGetFunction forward,
            cuKernelGetLibrary forward,
            cuKernelGetName forward,
            cuKernelGetParamInfo forward,
            cuKernelSetAttribute forward,
            cuKernelSetCacheConfig forward,
            cuLaunch hook,
            cuLaunchCooperativeKernel hook,
            cuLaunchCooperativeKernelMultiDevice hook,
            cuLaunchCooperativeKernel_ptsz hook,
            cuLaunchGrid hook,
            cuLaunchGridAsync hook,
            cuLaunchHostFunc hook,
            cuLaunchHostFunc_ptsz hook,
            cuLaunchKernel hook,
            cuLaunchKernelEx hook,
            cuLaunchKernelEx_ptsz hook,
            cuLaunchKernel_ptsz hook,
            cuLibraryEnumerateKernels forward,
            cuLibraryGetGlobal forward,
            cuLibraryGetKernel forward,
            cuLibraryGetKernelCount forward,
            cuLibraryGetManaged forward,
            cuLibraryGetModule forward,
            cuLibraryGetUnifiedFunction forward,
            cuLibraryLoadData forward,
            cuLibraryLoadFromFile forward,
            cuLibraryUnload forward,
            cuLinkAddData forward,
            cuLinkAddData_v2 forward,
            cuLinkAddFile forward,
            cuLinkAddFile_v2 forward,
            cuLinkComplete forward,
            cuLinkCreate forward,
            cuLinkCreate_v2 forward,
            cuLinkDestroy forward,
            cuLogsCurrent forward,
            cuLogsDumpToFile forward,
            cuLogsDumpToMemory forward,
            cuLogsRegisterCallback forward,
            cuLogsUnregisterCallback forward,
            cuMemAddressFree forward,
            cuMemAddressReserve forward,
            cuMemAdvise forward,
            cuMemAdvise_v2 forward,
            cuMemAlloc forward,
            cuMemAllocAsync hook,
            cuMemAllocAsync_ptsz hook,
            cuMemAllocFromPoolAsync hook,
            cuMemAllocFromPoolAsync_ptsz hook,
            cuMemAllocHost forward,
            cuMemAllocHost_v2 hook,
            cuMemAllocManaged hook,
            cuMemAllocPitch forward,
            cuMemAllocPitch_v2 hook,
            cuMemAlloc_v2 hook,
            cuMemBatchDecompressAsync forward,
            cuMemBatchDecompressAsync_ptsz forward,
            cuMemCreate hook,
            cuMemDiscardAndPrefetchBatchAsync forward,
            cuMemDiscardAndPrefetchBatchAsync_ptsz forward,
            cuMemDiscardBatchAsync forward,
            cuMemDiscardBatchAsync_ptsz forward,
            cuMemExportToShareableHandle forward,
            cuMemFree forward,
            cuMemFreeAsync hook,
            cuMemFreeAsync_ptsz hook,
            cuMemFreeHost hook,
            cuMemFree_v2 hook,
            cuMemGetAccess forward,
            cuMemGetAddressRange forward,
            cuMemGetAddressRange_v2 hook,
            cuMemGetAllocationGranularity forward,
            cuMemGetAllocationPropertiesFromHandle forward,
            cuMemGetDefaultMemPool forward,
            cuMemGetHandleForAddressRange forward,
            cuMemGetInfo forward,
            cuMemGetInfo_v2 hook,
            cuMemGetMemPool forward,
            cuMemHostAlloc hook,
            cuMemHostGetDevicePointer forward,
            cuMemHostGetDevicePointer_v2 forward,
            cuMemHostGetFlags forward,
            cuMemHostRegister hook,
            cuMemHostRegister_v2 hook,
            cuMemHostUnregister hook,
            cuMemImportFromShareableHandle forward,
            cuMemMap hook,
            cuMemMapArrayAsync forward,
            cuMemMapArrayAsync_ptsz forward,
            cuMemPoolCreate hook,
            cuMemPoolDestroy hook,
            cuMemPoolExportPointer forward,
            cuMemPoolExportToShareableHandle forward,
            cuMemPoolGetAccess forward,
            cuMemPoolGetAttribute hook,
            cuMemPoolImportFromShareableHandle forward,
            cuMemPoolImportPointer forward,
            cuMemPoolSetAccess forward,
            cuMemPoolSetAttribute hook,
            cuMemPoolTrimTo hook,
            cuMemPrefetchAsync forward,
            cuMemPrefetchAsync_ptsz forward,
            cuMemPrefetchAsync_v2 forward,
            cuMemPrefetchAsync_v2_ptsz forward,
            cuMemPrefetchBatchAsync forward,
            cuMemPrefetchBatchAsync_ptsz forward,
            cuMemRangeGetAttribute forward,
            cuMemRangeGetAttributes forward,
            cuMemRelease hook,
            cuMemRetainAllocationHandle hook,
            cuMemSetAccess forward,
            cuMemSetMemPool hook,
            cuMemUnmap hook,
            cuMemcpy forward,
            cuMemcpy2D forward,
            cuMemcpy2DAsync forward,
            cuMemcpy2DAsync_v2 forward,
            cuMemcpy2DAsync_v2_ptsz forward,
            cuMemcpy2DUnaligned forward,
            cuMemcpy2DUnaligned_v2 forward,
            cuMemcpy2DUnaligned_v2_ptds forward,
            cuMemcpy2D_v2 forward,
            cuMemcpy2D_v2_ptds forward,
            cuMemcpy3D forward,
            cuMemcpy3DAsync forward,
            cuMemcpy3DAsync_v2 forward,
            cuMemcpy3DAsync_v2_ptsz forward,
            cuMemcpy3DBatchAsync forward,
            cuMemcpy3DBatchAsync_ptsz forward,
            cuMemcpy3DBatchAsync_v2 forward,
            cuMemcpy3DBatchAsync_v2_ptsz forward,
            cuMemcpy3DPeer forward,
            cuMemcpy3DPeerAsync forward,
            cuMemcpy3DPeerAsync_ptsz forward,
            cuMemcpy3DPeer_ptds forward,
            cuMemcpy3D_v2 forward,
            cuMemcpy3D_v2_ptds forward,
            cuMemcpyAsync forward,
            cuMemcpyAsync_ptsz forward,
            cuMemcpyAtoA forward,
            cuMemcpyAtoA_v2 forward,
            cuMemcpyAtoA_v2_ptds forward,
            cuMemcpyAtoD forward,
            cuMemcpyAtoD_v2 forward,
            cuMemcpyAtoD_v2_ptds forward,
            cuMemcpyAtoH forward,
            cuMemcpyAtoHAsync forward,
            cuMemcpyAtoHAsync_v2 forward,
            cuMemcpyAtoHAsync_v2_ptsz forward,
            cuMemcpyAtoH_v2 forward,
            cuMemcpyAtoH_v2_ptds forward,
            cuMemcpyBatchAsync forward,
            cuMemcpyBatchAsync_ptsz forward,
            cuMemcpyBatchAsync_v2 forward,
            cuMemcpyBatchAsync_v2_ptsz forward,
            cuMemcpyDtoA forward,
            cuMemcpyDtoA_v2 forward,
            cuMemcpyDtoA_v2_ptds forward,
            cuMemcpyDtoD forward,
            cuMemcpyDtoDAsync forward,
            cuMemcpyDtoDAsync_v2 forward,
            cuMemcpyDtoDAsync_v2_ptsz forward,
            cuMemcpyDtoD_v2 forward,
            cuMemcpyDtoD_v2_ptds forward,
            cuMemcpyDtoH forward,
            cuMemcpyDtoHAsync forward,
            cuMemcpyDtoHAsync_v2 forward,
            cuMemcpyDtoHAsync_v2_ptsz forward,
            cuMemcpyDtoH_v2 forward,
            cuMemcpyDtoH_v2_ptds forward,
            cuMemcpyHtoA forward,
            cuMemcpyHtoAAsync forward,
            cuMemcpyHtoAAsync_v2 forward,
            cuMemcpyHtoAAsync_v2_ptsz forward,
            cuMemcpyHtoA_v2 forward,
            cuMemcpyHtoA_v2_ptds forward,
            cuMemcpyHtoD forward,
            cuMemcpyHtoDAsync forward,
            cuMemcpyHtoDAsync_v2 forward,
            cuMemcpyHtoDAsync_v2_ptsz forward,
            cuMemcpyHtoD_v2 forward,
            cuMemcpyHtoD_v2_ptds forward,
            cuMemcpyPeer forward,
            cuMemcpyPeerAsync forward,
            cuMemcpyPeerAsync_ptsz forward,
            cuMemcpyPeer_ptds forward,
            cuMemcpy_ptds forward,
            cuMemsetD16 forward,
            cuMemsetD16Async forward,
            cuMemsetD16Async_ptsz forward,
            cuMemsetD16_v2 forward,
            cuMemsetD16_v2_ptds forward,
            cuMemsetD2D16 forward,
            cuMemsetD2D16Async forward,
            cuMemsetD2D16Async_ptsz forward,
            cuMemsetD2D16_v2 forward,
            cuMemsetD2D16_v2_ptds forward,
            cuMemsetD2D32 forward,
            cuMemsetD2D32Async forward,
            cuMemsetD2D32Async_ptsz forward,
            cuMemsetD2D32_v2 forward,
            cuMemsetD2D32_v2_ptds forward,
            cuMemsetD2D8 forward,
            cuMemsetD2D8Async forward,
            cuMemsetD2D8Async_ptsz forward,
            cuMemsetD2D8_v2 forward,
            cuMemsetD2D8_v2_ptds forward,
            cuMemsetD32 forward,
            cuMemsetD32Async forward,
            cuMemsetD32Async_ptsz forward,
            cuMemsetD32_v2 forward,
            cuMemsetD32_v2_ptds forward,
            cuMemsetD8 forward,
            cuMemsetD8Async forward,
            cuMemsetD8Async_ptsz forward,
            cuMemsetD8_v2 forward,
            cuMemsetD8_v2_ptds forward,
            cuMipmappedArrayCreate hook,
            cuMipmappedArrayDestroy hook,
            cuMipmappedArrayGetLevel forward,
            cuMipmappedArrayGetMemoryRequirements forward,
            cuMipmappedArrayGetSparseProperties forward,
            cuModuleEnumerateFunctions forward,
            cuModuleGetFunction forward,
            cuModuleGetFunctionCount forward,
            cuModuleGetGlobal forward,
            cuModuleGetGlobal_v2 forward,
            cuModuleGetLoadingMode forward,
            cuModuleGetSurfRef forward,
            cuModuleGetTexRef forward,
            cuModuleLoad forward,
            cuModuleLoadData forward,
            cuModuleLoadDataEx forward,
            cuModuleLoadFatBinary forward,
            cuModuleUnload forward,
            cuMulticastAddDevice forward,
            cuMulticastBindAddr forward,
            cuMulticastBindMem forward,
            cuMulticastCreate forward,
            cuMulticastGetGranularity forward,
            cuMulticastUnbind forward,
            cuOccupancyAvailableDynamicSMemPerBlock forward,
            cuOccupancyMaxActiveBlocksPerMultiprocessor forward,
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags forward,
            cuOccupancyMaxActiveClusters forward,
            cuOccupancyMaxPotentialBlockSize forward,
            cuOccupancyMaxPotentialBlockSizeWithFlags forward,
            cuOccupancyMaxPotentialClusterSize forward,
            cuParamSetSize forward,
            cuParamSetTexRef forward,
            cuParamSetf forward,
            cuParamSeti forward,
            cuParamSetv forward,
            cuPointerGetAttribute hook,
            cuPointerGetAttributes hook,
            cuPointerSetAttribute forward,
            cuSignalExternalSemaphoresAsync forward,
            cuSignalExternalSemaphoresAsync_ptsz forward,
            cuStreamAddCallback hook,
            cuStreamAddCallback_ptsz hook,
            cuStreamAttachMemAsync forward,
            cuStreamAttachMemAsync_ptsz forward,
            cuStreamBatchMemOp forward,
            cuStreamBatchMemOp_ptsz forward,
            cuStreamBatchMemOp_v2 forward,
            cuStreamBatchMemOp_v2_ptsz forward,
            cuStreamBeginCapture hook,
            cuStreamBeginCaptureToGraph hook,
            cuStreamBeginCaptureToGraph_ptsz hook,
            cuStreamBeginCapture_ptsz hook,
            cuStreamBeginCapture_v2 hook,
            cuStreamBeginCapture_v2_ptsz hook,
            cuStreamCopyAttributes forward,
            cuStreamCopyAttributes_ptsz forward,
            cuStreamCreate hook,
            cuStreamCreateWithPriority hook,
            cuStreamDestroy hook,
            cuStreamDestroy_v2 hook,
            cuStreamEndCapture hook,
            cuStreamEndCapture_ptsz hook,
            cuStreamGetAttribute forward,
            cuStreamGetAttribute_ptsz forward,
            cuStreamGetCaptureInfo forward,
            cuStreamGetCaptureInfo_ptsz forward,
            cuStreamGetCaptureInfo_v2 forward,
            cuStreamGetCaptureInfo_v2_ptsz forward,
            cuStreamGetCaptureInfo_v3 forward,
            cuStreamGetCaptureInfo_v3_ptsz forward,
            cuStreamGetCtx forward,
            cuStreamGetCtx_ptsz forward,
            cuStreamGetCtx_v2 forward,
            cuStreamGetCtx_v2_ptsz forward,
            cuStreamGetDevice forward,
            cuStreamGetDevice_ptsz forward,
            cuStreamGetFlags forward,
            cuStreamGetFlags_ptsz forward,
            cuStreamGetGreenCtx forward,
            cuStreamGetId forward,
            cuStreamGetId_ptsz forward,
            cuStreamGetPriority forward,
            cuStreamGetPriority_ptsz forward,
            cuStreamIsCapturing forward,
            cuStreamIsCapturing_ptsz forward,
            cuStreamQuery forward,
            cuStreamQuery_ptsz forward,
            cuStreamSetAttribute forward,
            cuStreamSetAttribute_ptsz forward,
            cuStreamSynchronize hook,
            cuStreamSynchronize_ptsz hook,
            cuStreamUpdateCaptureDependencies forward,
            cuStreamUpdateCaptureDependencies_ptsz forward,
            cuStreamUpdateCaptureDependencies_v2 forward,
            cuStreamUpdateCaptureDependencies_v2_ptsz forward,
            cuStreamWaitEvent hook,
            cuStreamWaitEvent_ptsz hook,
            cuStreamWaitValue32 forward,
            cuStreamWaitValue32_ptsz forward,
            cuStreamWaitValue32_v2 forward,
            cuStreamWaitValue32_v2_ptsz forward,
            cuStreamWaitValue64 forward,
            cuStreamWaitValue64_ptsz forward,
            cuStreamWaitValue64_v2 forward,
            cuStreamWaitValue64_v2_ptsz forward,
            cuStreamWriteValue32 forward,
            cuStreamWriteValue32_ptsz forward,
            cuStreamWriteValue32_v2 forward,
            cuStreamWriteValue32_v2_ptsz forward,
            cuStreamWriteValue64 forward,
            cuStreamWriteValue64_ptsz forward,
            cuStreamWriteValue64_v2 forward,
            cuStreamWriteValue64_v2_ptsz forward,
            cuSurfObjectCreate forward,
            cuSurfObjectDestroy forward,
            cuSurfObjectGetResourceDesc forward,
            cuSurfRefGetArray forward,
            cuSurfRefSetArray forward,
            cuTensorMapEncodeIm2col forward,
            cuTensorMapEncodeIm2colWide forward,
            cuTensorMapEncodeTiled forward,
            cuTensorMapReplaceAddress forward,
            cuTexObjectCreate forward,
            cuTexObjectDestroy forward,
            cuTexObjectGetResourceDesc forward,
            cuTexObjectGetResourceViewDesc forward,
            cuTexObjectGetTextureDesc forward,
            cuTexRefCreate forward,
            cuTexRefDestroy forward,
            cuTexRefGetAddress forward,
            cuTexRefGetAddressMode forward,
            cuTexRefGetAddress_v2 forward,
            cuTexRefGetArray forward,
            cuTexRefGetBorderColor forward,
            cuTexRefGetFilterMode forward,
            cuTexRefGetFlags forward,
            cuTexRefGetFormat forward,
            cuTexRefGetMaxAnisotropy forward,
            cuTexRefGetMipmapFilterMode forward,
            cuTexRefGetMipmapLevelBias forward,
            cuTexRefGetMipmapLevelClamp forward,
            cuTexRefGetMipmappedArray forward,
            cuTexRefSetAddress forward,
            cuTexRefSetAddress2D forward,
            cuTexRefSetAddress2D_v2 forward,
            cuTexRefSetAddress2D_v3 forward,
            cuTexRefSetAddressMode forward,
            cuTexRefSetAddress_v2 forward,
            cuTexRefSetArray forward,
            cuTexRefSetBorderColor forward,
            cuTexRefSetFilterMode forward,
            cuTexRefSetFlags forward,
            cuTexRefSetFormat forward,
            cuTexRefSetMaxAnisotropy forward,
            cuTexRefSetMipmapFilterMode forward,
            cuTexRefSetMipmapLevelBias forward,
            cuTexRefSetMipmapLevelClamp forward,
            cuTexRefSetMipmappedArray forward,
            cuThreadExchangeStreamCaptureMode forward,
            cuUserObjectCreate forward,
            cuUserObjectRelease forward,
            cuUserObjectRetain forward,
            cuWaitExternalSemaphoresAsync forward,
            cuWaitExternalSemaphoresAsync_ptsz forward,
        }
    };
}

/// What the door does with a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Callers reach the driver's own function.
    Forward,
    /// While a session is open, callers reach the hook of this name.
    Hook,
    /// Always ours: it hands out other functions.
    Lookup,
}

macro_rules! way {
    (forward) => {
        Way::Forward
    };
    (hook) => {
        Way::Hook
    };
    (lookup) => {
        Way::Lookup
    };
}

macro_rules! define_symbols {
    ($($name:ident $way:ident,)*) => {
        /// An exported function of the driver: its row in the table, from 0.
        #[allow(non_camel_case_types)] // the driver's own names
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub(crate) enum Symbol {
            $($name,)*
        }

        /// Every function, in order.
        pub(crate) const SYMBOLS: [Symbol; COUNT] = [$(Symbol::$name,)*];

        /// How many functions there are.
        pub(crate) const COUNT: usize = [$(stringify!($name),)*].len();

        const NAMES: [&str; COUNT] = [$(stringify!($name),)*];
        const C_NAMES: [&CStr; COUNT] = [$(c_name(concat!(stringify!($name), "\0")),)*];
        const WAYS: [Way; COUNT] = [$(way!($way),)*];
    };
}
for_each_symbol!(define_symbols);

const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => unreachable!(), // a name with its 0
    }
}

impl Symbol {
    /// The function of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        NAMES.binary_search(&name).ok().map(|row| SYMBOLS[row])
    }

    /// The driver's name for it.
    pub(crate) const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The same for C.
    pub(crate) const fn c_name(self) -> &'static CStr {
        C_NAMES[self as usize]
    }

    /// What the door does with it.
    pub(crate) const fn way(self) -> Way {
        WAYS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT, NAMES, SYMBOLS, Symbol, Way};

    #[test]
    fn rows_are_sorted_and_unique() {
        for pair in NAMES.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn a_name_finds_its_own_row_and_no_other() {
        for symbol in SYMBOLS {
            assert_eq!(Symbol::find(symbol.name()), Some(symbol));
        }
        assert_eq!(COUNT, 635);
        for unknown in ["", "cu", "cuMemAlloc_v3", "cuMemAlloc_v2 ", "cumemalloc_v2"] {
            assert_eq!(Symbol::find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_function_that_hands_out_functions_is_ours() {
        for symbol in SYMBOLS {
            let hands_out = ["cuGetProcAddress", "cuGetExportTable"]
                .iter()
                .any(|name| symbol.name().starts_with(name));
            assert_eq!(symbol.way() == Way::Lookup, hands_out, "{}", symbol.name());
        }
    }

    #[cfg(gpumem_door)]
    #[test]
    fn the_hooked_functions_are_those_that_have_a_hook() {
        for symbol in SYMBOLS {
            let hook = crate::intercept::hooks::function(symbol.name());
            let is_hooked = symbol.way() == Way::Hook;
            assert_eq!(hook.is_some(), is_hooked, "{}", symbol.name());
        }
    }

    #[test]
    fn a_hooked_function_is_hooked_in_its_variant_per_thread_too() {
        for symbol in SYMBOLS.iter().filter(|symbol| symbol.way() == Way::Hook) {
            for suffix in ["_ptsz", "_ptds"] {
                let variant = Symbol::find(&format!("{}{suffix}", symbol.name()));
                assert!(
                    variant.is_none_or(|variant| variant.way() == Way::Hook),
                    "{}{suffix}",
                    symbol.name()
                );
            }
        }
    }

    #[test]
    fn the_documentation_lists_exactly_the_hooked_functions() {
        let text = include_str!("../../../docs/door.md");
        let list = text
            .split_once("<!-- hooked functions -->")
            .and_then(|(_, rest)| rest.split_once("<!-- end -->"))
            .expect("docs/door.md has the two markers")
            .0;
        let documented: Vec<_> = list
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|word| word.starts_with("cu"))
            .collect();
        let hooked: Vec<_> = SYMBOLS
            .iter()
            .filter(|symbol| symbol.way() == Way::Hook)
            .map(|symbol| symbol.name())
            .collect();
        assert!(
            documented == hooked,
            "the list in docs/door.md should be:\n{}",
            hooked
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
}
