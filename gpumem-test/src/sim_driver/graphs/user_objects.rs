//! Things of the program that live as long as graphs need them.

use std::ffi::{c_uint, c_void};
use std::sync::{Arc, Mutex};

use super::graph;
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::objects::{Objects, lock};

static OBJECTS: Objects<Arc<UserObject>> = Objects::new();

/// `CU_GRAPH_USER_OBJECT_MOVE`: the caller's references become the graph's.
const MOVE: c_uint = 1;

#[derive(Debug)]
struct UserObject {
    references: Mutex<u64>,
    destructor: Destructor,
}

#[derive(Debug)]
struct Destructor(unsafe extern "C" fn(*mut c_void), *mut c_void);

// SAFETY: the pointer is the program's and only handed on; by the interface's contract, the
// function may be called on any thread.
unsafe impl Send for Destructor {}
// SAFETY: as above; it is called once.
unsafe impl Sync for Destructor {}

/// References that a graph has: objects, each with how many.
#[derive(Debug, Default)]
pub(in crate::sim_driver) struct References(Vec<(Handle, u64)>);

impl References {
    /// The same again, counted.
    pub(super) fn retain_all(&self) -> Self {
        for (object, _) in &self.0 {
            // Those that a graph holds exist.
            let _ = retain(*object, 1);
        }
        Self(self.0.iter().map(|(object, _)| (*object, 1)).collect())
    }

    /// Lets all of them go; with nothing locked, since the last one calls the program.
    pub(super) fn release_all(self) {
        for (object, count) in self.0 {
            let _ = release(object, count);
        }
    }

    fn add(&mut self, object: Handle, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == object) {
            Some((_, own)) => *own += count,
            None => self.0.push((object, count)),
        }
    }

    fn remove(&mut self, object: Handle, count: u64) -> Answer {
        let known = self
            .0
            .iter_mut()
            .find(|(known, own)| *known == object && *own >= count);
        known.ok_or(Status::INVALID_VALUE)?.1 -= count;
        self.0.retain(|(_, own)| *own > 0);
        Ok(())
    }
}

fn retain(handle: Handle, count: u64) -> Answer {
    let object = OBJECTS.get(handle).ok_or(Status::INVALID_VALUE)?;
    if count == 0 {
        return Err(Status::INVALID_VALUE);
    }
    *lock(&object.references) += count;
    Ok(())
}

fn release(handle: Handle, count: u64) -> Answer {
    let object = OBJECTS.get(handle).ok_or(Status::INVALID_VALUE)?;
    let left = {
        let mut references = lock(&object.references);
        if count == 0 || count > *references {
            return Err(Status::INVALID_VALUE);
        }
        *references -= count;
        *references
    };
    if left == 0 && OBJECTS.remove(handle).is_some() {
        let Destructor(destroy, data) = object.destructor;
        // SAFETY: the program gave function and data for this call, which comes once.
        unsafe { destroy(data) };
    }
    Ok(())
}

driver_functions! {
    fn cuUserObjectCreate(
        object: *mut Handle,
        data: *mut c_void,
        destructor: Option<unsafe extern "C" fn(*mut c_void)>,
        references: c_uint,
        _flags: c_uint,
    ) {
        let destructor = destructor.ok_or(Status::INVALID_VALUE)?;
        if references == 0 || object.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let made = UserObject {
            references: Mutex::new(u64::from(references)),
            destructor: Destructor(destructor, data),
        };
        put(object, OBJECTS.add(Arc::new(made)))
    }

    fn cuUserObjectRetain(object: Handle, count: c_uint) {
        retain(object, u64::from(count))
    }

    fn cuUserObjectRelease(object: Handle, count: c_uint) {
        release(object, u64::from(count))
    }

    fn cuGraphRetainUserObject(handle: Handle, object: Handle, count: c_uint, flags: c_uint) {
        let graph = graph(handle)?;
        let count = u64::from(count);
        if flags & MOVE == 0 {
            retain(object, count)?;
        } else if count == 0 || OBJECTS.get(object).is_none() {
            return Err(Status::INVALID_VALUE);
        }
        lock(&graph).references.add(object, count);
        Ok(())
    }

    fn cuGraphReleaseUserObject(handle: Handle, object: Handle, count: c_uint) {
        let graph = graph(handle)?;
        lock(&graph).references.remove(object, u64::from(count))?;
        release(object, u64::from(count))
    }
}
