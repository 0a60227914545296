//! Tensors as text: the expected lines are PyTorch's.

use ptr::{at, RequiresGrad, Result, Tensor};

fn shown(tensor: &Tensor) -> String {
    tensor.to_string()
}

#[test]
fn tensors_look_as_in_python() -> Result<()> {
    ptr::init(ptr::Config::default())?;
    let cases: Vec<(Tensor, &str)> = vec![
        (ptr::tensor(&[1.0f32, 2.5, -3.25, 1e-3], &[4])?, "tensor([ 1.0000e+00,  2.5000e+00, -3.2500e+00,  1.0000e-03])"),
        (ptr::tensor(&[1.0f64, 2.0, 3.0], &[3])?, "tensor([1., 2., 3.], dtype=ptr.float64)"),
        (ptr::tensor(&[1i64, -20, 300], &[3])?, "tensor([  1, -20, 300])"),
        (ptr::tensor(&[true, false], &[2])?, "tensor([ True, False])"),
        (ptr::tensor(&[1u8, 2], &[2, 1])?, "tensor([[1],\n        [2]], dtype=ptr.uint8)"),
        (ptr::tensor(&[0.0f32, f32::INFINITY, f32::NAN, -1.5], &[2, 2])?, "tensor([[ 0.0000,     inf],\n        [    nan, -1.5000]])"),
        (ptr::tensor(&[1e10f32, 1.0], &[2])?, "tensor([1.0000e+10, 1.0000e+00])"),
        (ptr::tensor(&[7.0f32], &[])?, "tensor(7.)"),
        (ptr::tensor::<f32>(&[], &[0])?, "tensor([])"),
        (ptr::tensor::<f32>(&[], &[2, 0])?, "tensor([], size=(2, 0))"),
        (ptr::tensor::<i64>(&[], &[0])?, "tensor([], dtype=ptr.int64)"),
        (ptr::tensor(&[ptr::Complex::new(1.0f32, -2.5), ptr::Complex::new(0.0, 3.0)], &[2])?, "tensor([1.-2.5000j, 0.+3.0000j])"),
        (at::conj(&ptr::tensor(&[ptr::Complex::new(1.0f32, -2.5)], &[1])?)?, "tensor([1.+2.5000j])"),
        (at::t(&ptr::tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?)?, "tensor([[1., 4.],\n        [2., 5.],\n        [3., 6.]])"),
        (ptr::tensor(&(0..24).map(|i| i as f32 / 8.0).collect::<Vec<_>>(), &[2, 3, 4])?, "tensor([[[0.0000, 0.1250, 0.2500, 0.3750],\n         [0.5000, 0.6250, 0.7500, 0.8750],\n         [1.0000, 1.1250, 1.2500, 1.3750]],\n\n        [[1.5000, 1.6250, 1.7500, 1.8750],\n         [2.0000, 2.1250, 2.2500, 2.3750],\n         [2.5000, 2.6250, 2.7500, 2.8750]]])"),
        (ptr::tensor(&(0..30).map(|i| i as f32 / 8.0).collect::<Vec<_>>(), &[30])?, "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,\n        1.1250, 1.2500, 1.3750, 1.5000, 1.6250, 1.7500, 1.8750, 2.0000, 2.1250,\n        2.2500, 2.3750, 2.5000, 2.6250, 2.7500, 2.8750, 3.0000, 3.1250, 3.2500,\n        3.3750, 3.5000, 3.6250])"),
        (ptr::tensor(&(0..2000).collect::<Vec<i64>>(), &[2000])?, "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
        (ptr::tensor(&(0..2000).map(|i| i as f32).collect::<Vec<_>>(), &[50, 40])?, "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,\n         3.9000e+01],\n        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 7.7000e+01, 7.8000e+01,\n         7.9000e+01],\n        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.1700e+02, 1.1800e+02,\n         1.1900e+02],\n        ...,\n        [1.8800e+03, 1.8810e+03, 1.8820e+03,  ..., 1.9170e+03, 1.9180e+03,\n         1.9190e+03],\n        [1.9200e+03, 1.9210e+03, 1.9220e+03,  ..., 1.9570e+03, 1.9580e+03,\n         1.9590e+03],\n        [1.9600e+03, 1.9610e+03, 1.9620e+03,  ..., 1.9970e+03, 1.9980e+03,\n         1.9990e+03]])"),
        (ptr::tensor(&(0..1200).collect::<Vec<i32>>(), &[2, 600])?, "tensor([[   0,    1,    2,  ...,  597,  598,  599],\n        [ 600,  601,  602,  ..., 1197, 1198, 1199]], dtype=ptr.int32)"),
        (ptr::tensor(&[0.5f32, 1.5], &[2])?.set_requires_grad(true)?, "tensor([0.5000, 1.5000], requires_grad=True)"),
        (at::mul_tensor(&ptr::tensor(&[0.5f32, 1.5], &[2])?.set_requires_grad(true)?, &ptr::tensor(&[2.0f32], &[])?)?, "tensor([1., 3.], grad_fn=<MulBackward0>)"),
        (at::to_dtype(&ptr::tensor(&[0.1f32, 100.0], &[2])?, ptr::ScalarType::Half, false, false, None)?, "tensor([9.9976e-02, 1.0000e+02], dtype=ptr.float16)"),
        (at::to_dtype(&ptr::tensor(&[1.0f32, 2.5], &[2])?, ptr::ScalarType::Float8_e5m2, false, false, None)?, "tensor([1.0000, 2.5000], dtype=ptr.float8_e5m2)"),
    ];
    for (tensor, expected) in &cases {
        assert_eq!(shown(tensor), *expected);
    }
    Ok(())
}

#[test]
fn what_cannot_be_read_shows_its_size() -> Result<()> {
    ptr::init(ptr::Config::default())?;
    let x = ptr::tensor(&[1.0f32, 2.0], &[2])?;
    let meta = at::empty_like(&x, None, None, Some(ptr::DeviceType::Meta.into()), None, None)?;
    assert_eq!(shown(&meta), "tensor(..., device='meta', size=(2,))");
    x.storage()?.resize(0)?;
    assert_eq!(shown(&x), "tensor(..., size=(2,))");
    Ok(())
}
