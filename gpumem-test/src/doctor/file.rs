//! Reports as JSON. `docs/device-report.md` explains the keys.

use std::path::Path;

use super::report::DeviceReport;
use crate::device::sim::DeviceProfile;
use crate::error::Error;

impl DeviceReport {
    /// The report as JSON, indented; ends with a line break.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("a report has string keys only: {error}"));
        text.push('\n');
        text
    }

    /// A report that [`DeviceReport::to_json`] wrote.
    ///
    /// # Errors
    /// If the text is none, or of a version that is not known here.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::recording(format!("device report: {what}"));
        let report: Self = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let (found, known) = (report.schema, DeviceProfile::SCHEMA);
        if found == known {
            Ok(report)
        } else {
            Err(wrong(format!(
                "`schema` is {found}, and this version of gpumem-test reads {known}"
            )))
        }
    }

    /// Writes the report to a JSON file, which is a device profile too: `sim:PATH` simulates the card.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        std::fs::write(path, self.to_json()).map_err(|error| {
            let shown = path.display();
            Error::io(format!("cannot write the device report `{shown}`"), error)
        })
    }
}
