//! A configuration string, cut into tokens.

use crate::error::Error;

/// The tokens of a configuration string: words, and each of `,` `:` `[` `]` by itself.
///
/// White space is dropped everywhere, even inside words.
///
/// Source: torch 2.11 `c10/core/AllocatorConfig.h` `ConfigTokenizer`, and recordings.
pub(super) struct Tokens {
    tokens: Vec<String>,
    /// Words that were written with white space inside.
    pub(super) glued: Vec<String>,
}

impl Tokens {
    pub(super) fn new(text: &str) -> Self {
        let mut tokens: Vec<String> = Vec::new();
        let mut glued = Vec::new();
        let mut word = String::new();
        let mut gap = false;
        let mut is_glued = false;
        for character in text.chars() {
            match character {
                ',' | ':' | '[' | ']' => {
                    if !word.is_empty() {
                        if is_glued {
                            glued.push(word.clone());
                        }
                        tokens.push(std::mem::take(&mut word));
                    }
                    is_glued = false;
                    gap = false;
                    tokens.push(character.to_string());
                }
                ' ' | '\t'..='\r' => gap = true,
                _ => {
                    is_glued |= gap && !word.is_empty();
                    gap = false;
                    word.push(character);
                }
            }
        }
        if !word.is_empty() {
            if is_glued {
                glued.push(word.clone());
            }
            tokens.push(word);
        }
        Self { tokens, glued }
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The token at `index`.
    ///
    /// # Errors
    /// If the string ends before.
    pub(super) fn at(&self, index: usize) -> Result<&str, Error> {
        match self.tokens.get(index) {
            Some(token) => Ok(token),
            None => {
                let after = self.tokens.last().map_or("", String::as_str);
                Err(Error::configuration(format!(
                    "the configuration ends after `{after}` where a value is missing: \
                     Index out of bounds in ConfigTokenizer"
                ))
                .with_help("write it as `option:value,option:value`"))
            }
        }
    }

    pub(super) fn is(&self, index: usize, token: &str) -> bool {
        self.tokens.get(index).is_some_and(|found| found == token)
    }
}
