//! Trains a two-layer perceptron on a spiral, with no Python in the process.
//!
//!     cargo run --release -p ptr --example mlp -- [threads]

use ptr::{at, Config, NoGradGuard, RequiresGrad, Result, Scalar, SymInt, Tensor};

const CLASSES: usize = 3;
const POINTS: usize = 100;
const HIDDEN: i64 = 64;

/// Points of three interleaved spirals, and which spiral each belongs to.
fn spirals() -> Result<(Tensor, Tensor)> {
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for class in 0..CLASSES {
        for i in 0..POINTS {
            let radius = i as f32 / POINTS as f32;
            let angle = 4.0 * (class as f32 + radius) + 0.1 * (12.9898 * i as f32).sin();
            points.extend([radius * angle.sin(), radius * angle.cos()]);
            labels.push(class as i64);
        }
    }
    let rows = (CLASSES * POINTS) as i64;
    Ok((ptr::tensor(&points, &[rows, 2])?, ptr::tensor(&labels, &[rows])?))
}

/// A fully connected layer, initialized as PyTorch's `nn.Linear`: uniform within ±1/√inputs.
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn new(inputs: i64, outputs: i64) -> Result<Linear> {
        let bound = 1.0 / (inputs as f64).sqrt();
        let uniform = |sizes: &[i64]| -> Result<Tensor> {
            let count = sizes.iter().product::<i64>() as usize;
            let tensor = ptr::tensor(&vec![0f32; count], sizes)?;
            at::uniform_(&tensor, -bound, bound, None)?;
            tensor.set_requires_grad(true)
        };
        Ok(Linear { weight: uniform(&[outputs, inputs])?, bias: uniform(&[outputs])? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        at::linear(x, &self.weight, Some(&self.bias))
    }
}

fn main() -> Result<()> {
    let threads = std::env::args().nth(1).and_then(|n| n.parse().ok());
    ptr::init(threads.map_or(Config::new(), |n| Config::new().threads(n)))?;
    ptr::manual_seed(0)?;
    let (points, labels) = spirals()?;
    let layers = [Linear::new(2, HIDDEN)?, Linear::new(HIDDEN, CLASSES as i64)?];
    let parameters: Vec<&Tensor> = layers.iter().flat_map(|l| [&l.weight, &l.bias]).collect();
    let forward = |x: &Tensor| layers[1].forward(&at::relu(&layers[0].forward(x)?)?);

    for step in 0..=1000 {
        let loss = at::cross_entropy_loss(&forward(&points)?, &labels, None, 1, &SymInt::from(-100), 0.0)?;
        ptr::backward(&loss)?;
        {
            let _no_grad = NoGradGuard::new();
            for parameter in &parameters {
                if let Some(gradient) = ptr::grad(parameter) {
                    at::add__tensor(parameter, &gradient, &Scalar::Float(-0.5))?;
                    at::zero_(&gradient)?;
                }
            }
        }
        if step % 250 == 0 {
            println!("step {step:4}  loss {:.4}", ptr::to_vec::<f32>(&loss)?[0]);
        }
    }
    let predicted = at::argmax(&forward(&points)?, Some(1), false)?;
    let (predicted, labels) = (ptr::to_vec::<i64>(&predicted)?, ptr::to_vec::<i64>(&labels)?);
    let right = predicted.iter().zip(&labels).filter(|(a, b)| a == b).count();
    println!(
        "accuracy {:.1} % on {} threads",
        100.0 * right as f64 / labels.len() as f64,
        ptr::num_threads()
    );
    Ok(())
}
