//! The monitoring calls that PyTorch users know.

use std::collections::BTreeMap;

use crate::bytes::Bytes;
use crate::device::{DeviceMemory, MemoryInfo};
use crate::heap_map::HeapMap;
use crate::policy::{AnyPolicy, BfcPolicy, BfcStats, Policy, Statistics, memory_summary};

use super::Gpu;

/// Figures of the session so far. They stay readable after the session has ended.
impl Gpu {
    /// Bytes of blocks that the code holds (`torch.cuda.memory_allocated`).
    pub fn memory_allocated(&self) -> Bytes {
        self.figure(|statistics| statistics.allocated_bytes.all.current)
    }

    /// Bytes that the policy holds from the device (`torch.cuda.memory_reserved`).
    pub fn memory_reserved(&self) -> Bytes {
        self.figure(|statistics| statistics.reserved_bytes.all.current)
    }

    /// The highest [`memory_allocated`](Self::memory_allocated) since the start or the last reset.
    pub fn max_memory_allocated(&self) -> Bytes {
        self.figure(|statistics| statistics.allocated_bytes.all.peak)
    }

    /// The highest [`memory_reserved`](Self::memory_reserved) since the start or the last reset.
    pub fn max_memory_reserved(&self) -> Bytes {
        self.figure(|statistics| statistics.reserved_bytes.all.peak)
    }

    /// Sets every peak to the present value. The test's own summary is not touched.
    pub fn reset_peak_memory_stats(&self) {
        self.session
            .lock()
            .policy_mut()
            .statistics_mut()
            .reset_peak();
    }

    /// Sets every sum and plain counter to 0. The test's own summary is not touched.
    pub fn reset_accumulated_memory_stats(&self) {
        self.session
            .lock()
            .policy_mut()
            .statistics_mut()
            .reset_accumulated();
    }

    /// All 122 counters by PyTorch's names (`torch.cuda.memory_stats`).
    pub fn memory_stats(&self) -> BTreeMap<String, i64> {
        self.session.lock().policy().statistics().by_name()
    }

    /// The table that `torch.cuda.memory_summary` prints.
    pub fn memory_summary(&self) -> String {
        memory_summary(self.session.lock().policy().statistics(), 0, false)
    }

    /// All segments and blocks (`torch.cuda.memory_snapshot`), by address.
    pub fn memory_snapshot(&self) -> HeapMap {
        self.session.lock().policy().heap_map()
    }

    /// Free and total bytes as the code sees them (`torch.cuda.mem_get_info`): under a budget, the
    /// budget less what is reserved, and the budget.
    pub fn memory_info(&self) -> MemoryInfo {
        self.session.lock().device().memory_info()
    }

    /// Bytes of pages that were given memory by a first write (`lazy`), as far as is known: a kernel
    /// is taken to write all of every block that it was handed. None under policies whose memory is
    /// there at the request, and on a real device, which does not say.
    pub fn memory_committed(&self) -> Option<Bytes> {
        let heap = self.session.lock();
        let device = heap.device().as_sim()?;
        (heap.policy().has_first_writes()).then(|| Bytes::new(device.committed()))
    }

    /// The settings of the policy that are in force, as (name, value).
    pub fn policy_settings(&self) -> Vec<(&'static str, String)> {
        self.session.lock().policy().settings()
    }

    /// The counters that TensorFlow and XLA keep of the pool (`memory_stats()` of a JAX device);
    /// none unless the policy is bfc.
    pub fn bfc_stats(&self) -> Option<BfcStats> {
        self.of_bfc(BfcPolicy::stats)
    }

    /// The log that TensorFlow and XLA write when a request of `size` bytes by the operation `op`
    /// fails now; none unless the policy is bfc.
    pub fn bfc_memory_dump(&self, size: Bytes, op: &str) -> Option<String> {
        self.of_bfc(|policy| policy.memory_dump(size.get(), op))
    }

    fn of_bfc<R>(&self, read: impl FnOnce(&BfcPolicy) -> R) -> Option<R> {
        match self.session.lock().policy() {
            AnyPolicy::Bfc(policy) => Some(read(policy)),
            _ => None,
        }
    }

    fn figure(&self, read: impl FnOnce(&Statistics) -> u64) -> Bytes {
        Bytes::new(read(self.session.lock().policy().statistics()))
    }
}
