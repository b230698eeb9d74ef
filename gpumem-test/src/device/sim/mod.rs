//! The simulated device.

/// A card's figures.
pub(crate) struct DeviceProfile;
impl DeviceProfile {
    pub(crate) fn by_name(name: &str) -> Result<Self, crate::Error> {
        Err(crate::Error::configuration(name))
    }
}
