//! Claims about the whole device.
