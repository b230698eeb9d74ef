//! Reading CUDA C++ for the kernels and variables that it defines.

use super::reader::Reader;
use super::{lowered, tokens};
use crate::sim_driver::modules::image::{Image, Kernel, Variable};
use crate::sim_driver::notes::note;

/// What a source defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) kernels: Vec<Function>,
    pub(super) variables: Vec<Variable>,
    /// Whether a macro makes kernels, whose names only a preprocessor knows.
    by_macro: bool,
    /// Lowered names that the program asked for.
    lowered: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Whether its name is its symbol (`extern "C"`).
    pub(super) plain: bool,
    pub(super) max_threads: Option<u32>,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let mut source = Self::default();
        let tokens = tokens::of(text, &mut source.by_macro);
        Reader::new(&tokens, &mut source).read();
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
