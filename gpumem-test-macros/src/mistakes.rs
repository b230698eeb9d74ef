//! What is wrong with one use of the attribute: all of it is reported at once.

/// The mistakes found so far, each at its own place in the user's code.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    /// Adds one.
    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(mistake),
            None => self.0 = Some(mistake),
        }
    }

    /// The value, or nothing and one mistake more.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|mistake| self.add(mistake)).ok()
    }

    /// The first error if there is one, with all others in it.
    pub(crate) fn into_result(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The sentences of an error, in order.
#[cfg(test)]
pub(crate) fn sentences(error: syn::Error) -> Vec<String> {
    error.into_iter().map(|each| each.to_string()).collect()
}
