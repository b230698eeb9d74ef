//! A small network trained with burn on a GPU. It knows nothing of the tests beside it.

use burn::backend::{Autodiff, Cuda, cuda::CudaDevice};
use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig, Relu};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

/// What it runs on: CUDA through cubecl, with gradients.
pub type Gpu = Autodiff<Cuda<f32, i32>>;

/// The network's shape and how it is trained.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Numbers of an input.
    pub inputs: usize,
    /// Neurons of each hidden layer.
    pub hidden: usize,
    /// Hidden layers.
    pub layers: usize,
    /// Inputs of one step.
    pub batch: usize,
    /// Steps.
    pub steps: usize,
}

/// Layers with a rectifier between them, and one number at the end.
#[derive(Module, Debug)]
pub struct Mlp<B: Backend> {
    layers: Vec<Linear<B>>,
    last: Linear<B>,
    relu: Relu,
}

impl<B: Backend> Mlp<B> {
    /// A network with random weights.
    pub fn new(settings: Settings, device: &B::Device) -> Self {
        let layers = (0..settings.layers)
            .map(|layer| {
                let inputs = if layer == 0 {
                    settings.inputs
                } else {
                    settings.hidden
                };
                LinearConfig::new(inputs, settings.hidden).init(device)
            })
            .collect();
        Self {
            layers,
            last: LinearConfig::new(settings.hidden, 1).init(device),
            relu: Relu::new(),
        }
    }

    /// The network's answers to a batch.
    pub fn forward(&self, batch: Tensor<B, 2>) -> Tensor<B, 2> {
        let hidden = (self.layers.iter()).fold(batch, |values, layer| {
            self.relu.forward(layer.forward(values))
        });
        self.last.forward(hidden)
    }
}

/// Trains a network to give the mean of its inputs. `at` is told what has just been done, when the
/// card has done it: burn works behind a queue of its own.
///
/// # Panics
/// If the card cannot do its work, for want of memory for example.
///
/// The losses of all steps, read from the card once, behind the last.
pub fn train(settings: Settings, at: &mut dyn FnMut(&str)) -> Vec<f32> {
    let device = CudaDevice::default();
    let mut done = |what: &str| {
        Gpu::sync(&device).expect("the card does its work");
        at(what);
    };
    let mut network = Mlp::<Gpu>::new(settings, &device);
    let mut adam = AdamConfig::new().init::<Gpu, Mlp<Gpu>>();
    done("network");
    let mut losses = Vec::with_capacity(settings.steps);
    for step in 0..settings.steps {
        let (inputs, means) = batch(settings, step, &device);
        let loss = MseLoss::new().forward(network.forward(inputs), means, Reduction::Mean);
        losses.push(loss.clone().detach());
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        network = adam.step(1e-3, network, gradients);
        done("step");
    }
    let losses = Tensor::cat(losses, 0).into_data();
    losses.to_vec().expect("losses are f32")
}

/// Inputs that look random and are the same in every run, and their means.
fn batch(settings: Settings, step: usize, device: &CudaDevice) -> (Tensor<Gpu, 2>, Tensor<Gpu, 2>) {
    let Settings { inputs, batch, .. } = settings;
    let mut state = step as u32 + 1;
    let values: Vec<f32> = (0..batch * inputs)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        })
        .collect();
    let means: Vec<f32> = values
        .chunks(inputs)
        .map(|row| row.iter().sum::<f32>() / inputs as f32)
        .collect();
    (
        Tensor::from_data(TensorData::new(values, [batch, inputs]), device),
        Tensor::from_data(TensorData::new(means, [batch, 1]), device),
    )
}
