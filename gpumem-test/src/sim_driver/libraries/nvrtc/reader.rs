//! Reading definitions of kernels and variables.

use super::source::{Function, Source};
use crate::sim_driver::modules::image::Variable;

/// Reads words, and adds what they define to a source.
pub(super) struct Reader<'a, 's> {
    tokens: &'a [&'a str],
    at: usize,
    source: &'s mut Source,
}

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn new(tokens: &'a [&'a str], source: &'s mut Source) -> Self {
        Self {
            tokens,
            at: 0,
            source,
        }
    }

    pub(super) fn read(&mut self) {
        // Whether each open brace is a block of C linkage.
        let mut braces: Vec<bool> = Vec::new();
        let mut c_linkage = false;
        while let Some(token) = self.next() {
            match token {
                "extern" if self.peek() == Some("\"C\"") => {
                    self.at += 1;
                    if self.peek() == Some("{") {
                        self.at += 1;
                        braces.push(true);
                    } else {
                        c_linkage = true;
                    }
                }
                "{" => {
                    braces.push(false);
                    c_linkage = false;
                }
                "}" => {
                    braces.pop();
                    c_linkage = false;
                }
                ";" => c_linkage = false,
                "__global__" => self.kernel(c_linkage || braces.contains(&true)),
                "__constant__" | "__device__" | "__managed__" => self.variable(token),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    /// What stands in the parentheses that come now.
    fn parenthesised(&mut self) -> &'a [&'a str] {
        let start = self.at + 1;
        let mut depth = 0_usize;
        while let Some(token) = self.next() {
            match token {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return &self.tokens[start..self.at - 1];
            }
        }
        &[]
    }

    /// A kernel's declaration behind `__global__`: its name is what stands before its parameters.
    fn kernel(&mut self, plain: bool) {
        let mut name = None;
        let mut max_threads = None;
        while let Some(token) = self.peek() {
            match (token, name) {
                ("{" | "}" | ";", _) => return,
                (
                    "(",
                    Some(
                        "__launch_bounds__" | "__cluster_dims__" | "__maxnreg__" | "__block_size__"
                        | "__attribute__" | "alignas",
                    ),
                ) => {
                    let inside = self.parenthesised();
                    if name == Some("__launch_bounds__")
                        && let [threads] | [threads, ",", ..] = inside
                    {
                        max_threads = threads.parse().ok();
                    }
                    name = None;
                }
                ("(", Some(name)) => {
                    let known = self.source.kernels.iter().any(|kernel| kernel.name == name);
                    if !known {
                        self.source.kernels.push(Function {
                            name: name.to_owned(),
                            plain,
                            max_threads,
                        });
                    }
                    return;
                }
                ("<", Some(_)) => self.skip_angles(),
                _ => {
                    self.at += 1;
                    if is_name(token) {
                        name = Some(token);
                    }
                }
            }
        }
    }

    /// Skips template arguments, which come now.
    fn skip_angles(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.next() {
            match token {
                "<" => depth += 1,
                ">" => depth -= 1,
                "{" | ";" => return,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// A variable's definition behind its space; functions on the device are not meant.
    fn variable(&mut self, space: &str) {
        let start = self.at;
        let mut managed = space == "__managed__";
        let (mut element, mut name) = (None, None);
        while let Some(token) = self.peek() {
            match token {
                "__managed__" => managed = true,
                "[" | "=" | ";" => break,
                "*" => element = Some(8),
                _ if is_name(token) => {
                    element = element.max(element_bytes(token));
                    name = Some(token);
                }
                "__align__" => {}
                _ => {
                    self.at = start; // a function, a template, or what is not understood
                    return;
                }
            }
            self.at += 1;
        }
        let mut bytes = element;
        while self.peek() == Some("[") {
            self.at += 1;
            let length = self.next().and_then(|length| length.parse::<u64>().ok());
            bytes = bytes
                .zip(length)
                .and_then(|(bytes, length)| bytes.checked_mul(length));
            if self.next() != Some("]") {
                return;
            }
        }
        if let (Some(bytes), Some(name)) = (bytes, name) {
            self.source.variables.push(Variable {
                name: name.to_owned(),
                bytes,
                managed,
            });
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Bytes of a type's name; none for what is no type that we know.
fn element_bytes(name: &str) -> Option<u64> {
    let base = name.strip_suffix(['1', '2', '3', '4']);
    let vector = base.filter(|base| scalar_bytes(base).is_some() && !base.ends_with("_t"));
    if let Some(base) = vector {
        let lanes = u64::from(name.as_bytes()[name.len() - 1] - b'0');
        return Some(scalar_bytes(base)? * lanes);
    }
    scalar_bytes(name)
}

fn scalar_bytes(name: &str) -> Option<u64> {
    Some(match name {
        "bool" | "char" | "uchar" | "int8_t" | "uint8_t" => 1,
        "short" | "ushort" | "int16_t" | "uint16_t" | "half" | "__half" | "__nv_bfloat16" => 2,
        "int" | "uint" | "unsigned" | "float" | "int32_t" | "uint32_t" => 4,
        "long" | "ulong" | "longlong" | "ulonglong" | "double" | "size_t" | "int64_t"
        | "uint64_t" => 8,
        _ => return None,
    })
}
