//! Reading PTX: entries, their parameters and shared memory, and variables of the module.
//!
//! Source: the PTX ISA, version 9.0, sections on directives and state spaces.

use super::{Image, Kernel, Variable};

/// A comment of ours in PTX: a kernel whose exact name only a compiler would know.
const MANGLED_PART: &str = "//gpumem-test: any mangled name with ";
/// A comment of ours in PTX: some kernels' names are not known.
const OPAQUE: &str = "//gpumem-test: any name";

/// Whether text means to be PTX: what comes first is its version.
pub(super) fn is_ptx(text: &str) -> bool {
    Tokens(text).next() == Some(".version")
}

pub(super) fn read(text: &str) -> Option<Image> {
    let mut image = Image::default();
    for line in text.lines() {
        image
            .mangled_parts
            .extend(line.strip_prefix(MANGLED_PART).map(str::to_owned));
        image.opaque |= line == OPAQUE;
    }
    let mut tokens = Tokens(text).peekable();
    let mut depth = 0_usize;
    let mut is_extern = false;
    while let Some(token) = tokens.next() {
        match token {
            "{" => depth += 1,
            "}" => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            ".target" => image.architecture = architecture(tokens.peek()?),
            ".extern" => is_extern = true,
            ";" => is_extern = false,
            ".entry" => {
                let name = tokens.next()?.to_owned();
                if let Some(kernel) = entry(name, &mut tokens)? {
                    image.kernels.push(kernel);
                }
            }
            ".global" | ".const" => {
                let declared = variables(&mut tokens)?;
                if !is_extern {
                    image.variables.extend(declared);
                }
                is_extern = false;
            }
            _ => {}
        }
    }
    (depth == 0).then_some(image)
}

/// PTX from which [`read`] gets the same image again, but for parameters and shared memory. It has
/// no instructions: it is what simulated compilers and linkers give.
pub(super) fn write(image: &Image) -> String {
    let mut text = format!(
        "//\n// Made by gpumem-test's simulated driver: names, and no instructions.\n//\n\
         .version 8.0\n.target sm_{}\n.address_size 64\n\n",
        image.architecture.unwrap_or(90)
    );
    if image.opaque {
        text += &format!("{OPAQUE}\n");
    }
    for part in &image.mangled_parts {
        text += &format!("{MANGLED_PART}{part}\n");
    }
    for variable in &image.variables {
        let managed = if variable.managed {
            ".attribute(.managed) "
        } else {
            ""
        };
        text += &format!(
            ".visible .global {managed}.align 16 .b8 {}[{}];\n",
            variable.name, variable.bytes
        );
    }
    for kernel in &image.kernels {
        text += &format!(".visible .entry {}()", kernel.name);
        if let Some(threads) = kernel.max_threads {
            text += &format!(" .maxntid {threads}, 1, 1");
        }
        text += " { ret; }\n";
    }
    text
}

fn architecture(target: &str) -> Option<u32> {
    let digits = target
        .strip_prefix("sm_")
        .or(target.strip_prefix("compute_"))?;
    digits
        .trim_end_matches(|letter: char| !letter.is_ascii_digit())
        .parse()
        .ok()
}

/// The rest of an entry behind its name; `None` inside for a mere declaration.
fn entry<'a>(name: String, tokens: &mut std::iter::Peekable<Tokens<'a>>) -> Option<Option<Kernel>> {
    let mut kernel = Kernel {
        name,
        ..Kernel::default()
    };
    loop {
        match tokens.next()? {
            "(" => kernel.parameters = parameters(tokens)?,
            ".maxntid" | ".reqntid" => kernel.max_threads = Some(extent(tokens)?),
            ";" => return Some(None),
            "{" => break,
            _ => {}
        }
    }
    let mut depth = 1_usize;
    while depth > 0 {
        match tokens.next()? {
            "{" => depth += 1,
            "}" => depth -= 1,
            ".shared" => {
                // An instruction on shared memory is one word (`ld.shared.f32`): this declares.
                let declared = variables(tokens)?;
                kernel.shared_bytes += declared.iter().map(|variable| variable.bytes).sum::<u64>();
            }
            _ => {}
        }
    }
    Some(Some(kernel))
}

/// Offset and size of each parameter, up to the closing parenthesis.
fn parameters<'a>(tokens: &mut std::iter::Peekable<Tokens<'a>>) -> Option<Vec<(usize, usize)>> {
    let mut parameters = Vec::new();
    let mut end = 0_u64;
    loop {
        match tokens.next()? {
            ")" => return Some(parameters),
            ".param" => {
                let declared = declaration(tokens)?;
                let offset = end.checked_next_multiple_of(declared.align)?;
                end = offset.checked_add(declared.bytes)?;
                parameters.push((
                    usize::try_from(offset).ok()?,
                    usize::try_from(declared.bytes).ok()?,
                ));
            }
            _ => {}
        }
    }
}

/// The threads of `x`, `x, y` or `x, y, z`.
fn extent<'a>(tokens: &mut std::iter::Peekable<Tokens<'a>>) -> Option<u32> {
    let mut threads: u32 = tokens.next()?.parse().ok()?;
    while tokens.next_if_eq(&",").is_some() {
        threads = threads.checked_mul(tokens.next()?.parse().ok()?)?;
    }
    Some(threads)
}

struct Declaration {
    name: String,
    bytes: u64,
    align: u64,
    managed: bool,
}

/// All variables of a declaration, behind its state space and up to its semicolon.
fn variables<'a>(tokens: &mut std::iter::Peekable<Tokens<'a>>) -> Option<Vec<Variable>> {
    let declared = declaration(tokens)?;
    let variable = Variable {
        name: declared.name,
        bytes: declared.bytes,
        managed: declared.managed,
    };
    while tokens.next()? != ";" {} // an initial value
    Some(vec![variable])
}

/// One variable: qualifiers, name, dimensions.
fn declaration<'a>(tokens: &mut std::iter::Peekable<Tokens<'a>>) -> Option<Declaration> {
    let (mut element, mut lanes, mut align, mut managed) = (0, 1, None, false);
    let name = loop {
        let token = tokens.next()?;
        match token {
            ".align" => align = Some(tokens.next()?.parse().ok()?),
            ".v2" => lanes = 2,
            ".v4" => lanes = 4,
            ".v8" => lanes = 8,
            ".attribute" | "(" | ")" | "," => {}
            ".managed" => managed = true,
            ".ptr" | ".global" | ".const" | ".shared" | ".local" => {}
            _ => match token.strip_prefix('.') {
                // Of a parameter's attributes only its type has a size.
                Some(kind) => element = element_bytes(kind).unwrap_or(element),
                None => break token.to_owned(),
            },
        }
    };
    let mut count = 1_u64;
    while tokens.next_if_eq(&"[").is_some() {
        let length = tokens.next()?;
        if length == "]" {
            count = 0; // as long as what is given to it; dynamic shared memory
            continue;
        }
        count = count.checked_mul(length.parse().ok()?)?;
        tokens.next_if_eq(&"]")?;
    }
    let natural = element * lanes;
    Some(Declaration {
        name,
        bytes: natural.checked_mul(count)?,
        align: align.unwrap_or(natural).max(1),
        managed,
    })
}

/// Bytes of a type: `b8`, `u32`, `f16x2`, `bf16`.
fn element_bytes(kind: &str) -> Option<u64> {
    match kind {
        "pred" => return Some(1),
        "texref" | "samplerref" | "surfref" => return Some(8),
        "f16x2" | "bf16x2" => return Some(4),
        _ => {}
    }
    let bits = kind.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    Some(bits.parse::<u64>().ok()?.div_ceil(8))
}

/// Words and single marks, without comments and quoted text.
#[derive(Clone)]
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            self.0 = self.0.trim_start();
            let skipped = if self.0.starts_with("//") {
                self.0.find('\n')?
            } else if self.0.starts_with("/*") {
                self.0.find("*/")? + 2
            } else if let Some(quoted) = self.0.strip_prefix('"') {
                quoted.find('"')? + 2
            } else {
                break;
            };
            self.0 = &self.0[skipped..];
        }
        let is_word = |letter: char| letter.is_alphanumeric() || "_$.%@".contains(letter);
        let end = match self.0.find(|letter| !is_word(letter)) {
            Some(0) => self.0.chars().next()?.len_utf8(),
            Some(end) => end,
            None if self.0.is_empty() => return None,
            None => self.0.len(),
        };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}
