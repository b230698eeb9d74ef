//! What can be asked of a stream and set on it.

use std::ffi::{c_int, c_uint};

use super::{OnStream, Stream, resolve};
use crate::abi::{Handle, Ordinal, Status};
use crate::sim_driver::export::{Answer, put, put_if};

/// `CUlaunchAttributeValue`.
type Value = [u64; 8];

const ACCESS_POLICY_WINDOW: c_int = 1;
const SYNCHRONIZATION_POLICY: c_int = 3;
const PRIORITY: c_int = 8;
const MEM_SYNC_DOMAIN_MAP: c_int = 9;
const MEM_SYNC_DOMAIN: c_int = 10;

/// The attributes that a stream keeps, as they were set.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    access_policy_window: Value,
    synchronization_policy: Value,
    mem_sync_domain_map: Value,
    mem_sync_domain: Value,
}

impl Attributes {
    fn of(&mut self, attribute: c_int) -> Result<&mut Value, Status> {
        match attribute {
            ACCESS_POLICY_WINDOW => Ok(&mut self.access_policy_window),
            SYNCHRONIZATION_POLICY => Ok(&mut self.synchronization_policy),
            MEM_SYNC_DOMAIN_MAP => Ok(&mut self.mem_sync_domain_map),
            MEM_SYNC_DOMAIN => Ok(&mut self.mem_sync_domain),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// Runs something on a stream of the tables; the null stream has default properties.
fn with<R>(
    stream: OnStream,
    legacy: R,
    run: impl FnOnce(&mut Stream) -> Result<R, Status>,
) -> Result<R, Status> {
    if stream.is_legacy() {
        return Ok(legacy);
    }
    run(stream.host.state.tables().streams.get_mut(stream.handle)?)
}

/// What `cuStreamGetId` says of a context's null stream: the context's own number.
fn number(stream: OnStream) -> Result<u64, Status> {
    with(stream, stream.context, |stream| Ok(stream.number))
}

fn copy_attributes(to: OnStream, from: OnStream) -> Answer {
    let attributes = with(from, Attributes::default(), |from| {
        Ok(from.attributes.clone())
    })?;
    with(to, (), |to| {
        to.attributes = attributes;
        Ok(())
    })
}

stream_functions! { null:
    fn cuStreamGetPriority, cuStreamGetPriority_ptsz(stream: Handle, priority: *mut c_int) {
        put(priority, with(resolve(stream, null)?, 0, |stream| Ok(stream.priority))?)
    }

    fn cuStreamGetFlags, cuStreamGetFlags_ptsz(stream: Handle, flags: *mut c_uint) {
        put(flags, with(resolve(stream, null)?, 0, |stream| Ok(stream.flags))?)
    }

    fn cuStreamGetId, cuStreamGetId_ptsz(stream: Handle, id: *mut u64) {
        put(id, number(resolve(stream, null)?)?)
    }

    fn cuStreamGetDevice, cuStreamGetDevice_ptsz(stream: Handle, device: *mut Ordinal) {
        put(device, resolve(stream, null)?.ordinal as Ordinal)
    }

    fn cuStreamGetCtx, cuStreamGetCtx_ptsz(stream: Handle, context: *mut Handle) {
        put(context, resolve(stream, null)?.context)
    }

    /// No stream belongs to a green context here.
    fn cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz(
        stream: Handle,
        context: *mut Handle,
        green: *mut Handle,
    ) {
        put(context, resolve(stream, null)?.context)?;
        put_if(green, 0);
        Ok(())
    }

    fn cuStreamGetAttribute, cuStreamGetAttribute_ptsz(
        stream: Handle,
        attribute: c_int,
        value: *mut Value,
    ) {
        let stream = resolve(stream, null)?;
        let found = if attribute == PRIORITY {
            let priority = with(stream, 0, |stream| Ok(stream.priority))?;
            let mut value = Value::default();
            value[0] = u64::from(priority.cast_unsigned());
            value
        } else {
            let default = *Attributes::default().of(attribute)?;
            with(stream, default, |stream| stream.attributes.of(attribute).copied())?
        };
        put(value, found)
    }

    fn cuStreamSetAttribute, cuStreamSetAttribute_ptsz(
        stream: Handle,
        attribute: c_int,
        value: *const Value,
    ) {
        let stream = resolve(stream, null)?;
        if value.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let value = value.read_unaligned();
        if attribute == PRIORITY {
            return with(stream, (), |stream| {
                stream.priority = value[0] as u32 as c_int;
                Ok(())
            });
        }
        Attributes::default().of(attribute)?;
        with(stream, (), |stream| {
            *stream.attributes.of(attribute)? = value;
            Ok(())
        })
    }

    fn cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz(to: Handle, from: Handle) {
        copy_attributes(resolve(to, null)?, resolve(from, null)?)
    }
}
