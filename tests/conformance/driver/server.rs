//! Who serves a recording's requests: the device itself, or a policy that always goes there.

use gpumem_test::{
    Address, Block, BlockId, DeviceMemory, DriverPolicy, Policy, PoolId, PoolSettings, Refusal,
    Request, SimDevice, StreamId,
};

/// The device's own calls, or those of a policy on it.
pub(super) enum Server {
    Device,
    Policy(Box<DriverPolicy>),
}

/// What a request got, with the policy's name for it.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) address: Address,
    id: BlockId,
}

impl Server {
    /// `eager`, which serves plain memory to whoever asks.
    pub(super) fn eager() -> Self {
        Self::Policy(Box::new(DriverPolicy::eager()))
    }

    /// `async` with a pool that is set so, on the device's default pool.
    pub(super) fn stream_ordered(settings: PoolSettings) -> Self {
        Self::Policy(Box::new(DriverPolicy::stream_ordered(settings)))
    }

    pub(super) fn is_policy(&self) -> bool {
        matches!(self, Self::Policy(_))
    }

    /// Sets the device up.
    pub(super) fn prepare(&mut self, device: &mut SimDevice) -> Result<(), String> {
        match self {
            Self::Device => Ok(()),
            Self::Policy(policy) => policy.prepare(device).map_err(|error| error.to_string()),
        }
    }

    /// A plain request. The policy is asked by the other call, which it must turn into this one.
    pub(super) fn plain(&mut self, device: &mut SimDevice, size: u64) -> Result<Given, Refusal> {
        match self {
            Self::Device => device.malloc(size).map(given),
            Self::Policy(policy) => served(policy, device, size, StreamId::DEFAULT),
        }
    }

    /// A request of a pool; a policy has but the default one.
    pub(super) fn ordered(
        &mut self,
        device: &mut SimDevice,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Given, Refusal> {
        match self {
            Self::Device => device.malloc_async(pool, size, stream).map(given),
            Self::Policy(policy) => served(policy, device, size, stream),
        }
    }

    /// `cuMemFreeAsync`.
    pub(super) fn free_ordered(
        &mut self,
        device: &mut SimDevice,
        given: Given,
        stream: StreamId,
    ) -> Result<(), String> {
        match self {
            Self::Device => {
                (device.free_async(given.address, stream)).map_err(|refusal| format!("{refusal:?}"))
            }
            Self::Policy(policy) => {
                (policy.free(device, &mut (), given.id, stream)).map_err(|error| error.to_string())
            }
        }
    }

    /// `cuMemFree`.
    pub(super) fn free(&mut self, device: &mut SimDevice, given: Given) -> Result<(), String> {
        match self {
            Self::Device => (device.free(given.address)).map_err(|refusal| format!("{refusal:?}")),
            Self::Policy(policy) => {
                (policy.free_idle(device, &mut (), given.id, StreamId::DEFAULT))
                    .map_err(|error| error.to_string())
            }
        }
    }

    /// After something that may have changed the device past the policy.
    pub(super) fn hear(&mut self, device: &mut SimDevice) {
        if let Self::Policy(policy) = self {
            policy.device_synchronized(device, &mut ());
        }
    }

    /// Whether what the policy counts as reserved is what the device says.
    pub(super) fn agrees(&self, reserved: u64) -> bool {
        match self {
            Self::Device => true,
            Self::Policy(policy) => policy.statistics().reserved_bytes.all.current == reserved,
        }
    }
}

fn given(address: Address) -> Given {
    Given {
        address,
        id: BlockId::NULL,
    }
}

fn served(
    policy: &mut DriverPolicy,
    device: &mut SimDevice,
    size: u64,
    stream: StreamId,
) -> Result<Given, Refusal> {
    match policy.alloc(device, &mut (), Request::new(size, stream)) {
        Ok(Block { id, address, .. }) => Ok(Given { address, id }),
        Err(error) if error.is_out_of_memory() => Err(Refusal::OutOfMemory),
        Err(_) => Err(Refusal::InvalidValue),
    }
}
