//! Reading CUDA C++ for the kernels and variables that it defines.

use super::lowered;
use crate::sim_driver::modules::image::{Image, Kernel, Variable};
use crate::sim_driver::notes::note;

/// What a source defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    kernels: Vec<Function>,
    variables: Vec<Variable>,
    /// Whether a macro makes kernels, whose names only a preprocessor knows.
    by_macro: bool,
    /// Lowered names that the program asked for.
    lowered: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    name: String,
    /// Whether its name is its symbol (`extern "C"`).
    plain: bool,
    max_threads: Option<u32>,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let mut source = Self::default();
        let tokens = Tokens::of(text, &mut source.by_macro);
        Reader {
            tokens: &tokens,
            at: 0,
            source: &mut source,
        }
        .read();
        source
    }

    /// Adds a header's.
    pub(super) fn join(&mut self, header: Self) {
        self.kernels.extend(header.kernels);
        self.variables.extend(header.variables);
        self.by_macro |= header.by_macro;
    }

    /// The name of what an expression means (`kernel`, `&ns::kernel<float>`).
    pub(super) fn lower(&mut self, expression: &str) -> Option<String> {
        let base = lowered::base_name(expression)?;
        if self.variables.iter().any(|variable| variable.name == base) {
            return Some(base.to_owned());
        }
        let kernel = self.kernels.iter().find(|kernel| kernel.name == base);
        match kernel {
            Some(kernel) if kernel.plain => Some(kernel.name.clone()),
            None if !self.by_macro => None,
            _ => {
                let name = lowered::mangled(expression, base);
                self.lowered.push(name.clone());
                Some(name)
            }
        }
    }

    /// The program that a compiler would make of it.
    pub(super) fn image(&self) -> Image {
        let mut image = Image {
            variables: self.variables.clone(),
            opaque: self.by_macro,
            ..Image::default()
        };
        for kernel in &self.kernels {
            if kernel.plain {
                image.kernels.push(Kernel {
                    name: kernel.name.clone(),
                    max_threads: kernel.max_threads,
                    ..Kernel::default()
                });
            } else {
                // In a mangled name every part stands behind its length.
                image
                    .mangled_parts
                    .push(format!("{}{}", kernel.name.len(), kernel.name));
            }
        }
        for name in &self.lowered {
            image.kernels.push(Kernel {
                name: name.clone(),
                ..Kernel::default()
            });
        }
        if self.by_macro {
            note("a macro makes kernels in a source for NVRTC: any name is taken for one of them");
        }
        image
    }
}

/// The words and marks of a source.
struct Tokens;

impl Tokens {
    /// Without comments, text in quotes (but for `"C"`) and the preprocessor's lines.
    fn of<'a>(text: &'a str, by_macro: &mut bool) -> Vec<&'a str> {
        let mut tokens = Vec::new();
        let mut rest = text;
        let mut starts_line = true;
        while let Some(first) = rest.chars().next() {
            let length = if first == '\n' {
                starts_line = true;
                1
            } else if first.is_whitespace() {
                first.len_utf8()
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else if first == '#' && starts_line {
                let length = directive_length(rest);
                let line = &rest[..length];
                let is_macro = line[1..].trim_start().starts_with("define");
                *by_macro |= is_macro && line.contains("__global__");
                length
            } else if first == '"' || first == '\'' {
                let length = quoted_length(rest, first);
                if &rest[..length] == "\"C\"" {
                    tokens.push(&rest[..length]);
                }
                length
            } else {
                starts_line = false;
                let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
                let length = match rest.find(|letter| !is_word(letter)) {
                    Some(0) => first.len_utf8(),
                    Some(end) => end,
                    None => rest.len(),
                };
                tokens.push(&rest[..length]);
                length
            };
            rest = &rest[length..];
        }
        tokens
    }
}

/// The length of a preprocessor's line with those that continue it.
fn directive_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    length
}

/// The length of quoted text with its quotes.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at, // a digit separator or an error, not a text
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

struct Reader<'a, 's> {
    tokens: &'a [&'a str],
    at: usize,
    source: &'s mut Source,
}

impl<'a> Reader<'a, '_> {
    fn read(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::Source;

    const SOURCE: &str = r#"
#include <cuda_fp16.h>
#define SQUARE(x) \
    ((x) * (x))
// extern "C" __global__ void in_a_comment() {}
__constant__ float table[16][4];
__device__ unsigned int counter;
__device__ float4 corner = {0, 0, 0, 0};
__device__ float* buffer;
__device__ __forceinline__ float twice(float x) { return 2.0f * x; }
extern "C" __global__ void __launch_bounds__(256, 2) scale(float* x, int n) {
    printf("__global__ void in_a_text(");
    if (threadIdx.x < n) { x[threadIdx.x] *= 1'000; }
}
extern "C" {
__global__ void inside(const float* __restrict__ x);
__global__ __launch_bounds__(WIDTH) void inside(const float* __restrict__ x) { }
}
namespace math {
template <typename T, int N> __global__ void norm(T* x) { __syncthreads(); }
}
__global__ void plain_cpp(int* x) { }
"#;

    #[test]
    fn a_source_says_kernels_and_variables() {
        let source = Source::parse(SOURCE);
        let kernels: Vec<(&str, bool, Option<u32>)> = source
            .kernels
            .iter()
            .map(|kernel| (kernel.name.as_str(), kernel.plain, kernel.max_threads))
            .collect();
        assert_eq!(
            kernels,
            [
                ("scale", true, Some(256)),
                ("inside", true, None),
                ("norm", false, None),
                ("plain_cpp", false, None),
            ]
        );
        let variables: Vec<(&str, u64)> = source
            .variables
            .iter()
            .map(|variable| (variable.name.as_str(), variable.bytes))
            .collect();
        assert_eq!(
            variables,
            [
                ("table", 256),
                ("counter", 4),
                ("corner", 16),
                ("buffer", 8)
            ]
        );
        assert!(!source.by_macro);
    }

    #[test]
    fn names_of_cpp_are_known_by_their_part_of_a_mangled_name() {
        let image = Source::parse(SOURCE).image();
        assert!(image.kernel("_Z9plain_cppPi").is_some());
        assert!(image.kernel("_ZN4math4normIfLi4EEEvPT_").is_some());
        assert!(image.kernel("plain_cpp").is_none(), "its symbol is mangled");
        assert!(image.kernel("_Z5scalePfi").is_none(), "its symbol is not");
    }

    #[test]
    fn expressions_have_names_that_load() {
        let mut source = Source::parse(SOURCE);
        let of_float = source.lower("&math::norm<float, 4>").unwrap();
        let of_double = source.lower("math::norm<double, 4>").unwrap();
        assert_ne!(of_float, of_double);
        assert_eq!(source.lower("scale").as_deref(), Some("scale"));
        assert_eq!(source.lower("&table").as_deref(), Some("table"));
        assert_eq!(source.lower("missing<int>"), None);
        let image = source.image();
        assert!(image.kernel(&of_float).is_some() && image.kernel(&of_double).is_some());
    }

    #[test]
    fn a_macro_that_makes_kernels_leaves_every_name_possible() {
        let source = Source::parse(
            "#define OP(NAME) \\\nextern \"C\" __global__ void NAME(float* x) {}\nOP(relu)\n",
        );
        assert!(source.image().kernel("relu").is_some());
        assert!(!Source::parse("#if __global__\n#endif").by_macro);
    }
}
