//! Meta functions of the `linalg` operators.

use c10::{check, infer_expand_geometry, Result, Scalar, SizeInt, SymInt, Tensor};
use iter::{type_meta_name, StructuredOutputs};

fn same_dtype(a: &Tensor, b: &Tensor, what: &str) -> Result<()> {
    check!(
        a.dtype() == b.dtype(),
        "{what}, but got: {} != {}",
        type_meta_name(a.dtype()),
        type_meta_name(b.dtype())
    );
    Ok(())
}

fn matrix_product_shape<I: SizeInt>(mat1: &Tensor, mat2: &Tensor) -> Result<[I; 2]> {
    let (a, b) = (I::sizes_of(mat1)?, I::sizes_of(mat2)?);
    check!(
        a[1].expect_eq(&b[0])?,
        "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
        a[0],
        a[1],
        b[0],
        b[1]
    );
    Ok([a[0].clone(), b[1].clone()])
}

/// `mm`
pub fn mm_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, mat2: &Tensor) -> Result<()> {
    check!(self_.dim() == 2, "self must be a matrix");
    check!(mat2.dim() == 2, "mat2 must be a matrix");
    let shape: [I; 2] = matrix_product_shape(self_, mat2)?;
    same_dtype(self_, mat2, "expected m1 and m2 to have the same dtype")?;
    outs.set_output_raw_strided(0, &shape, &[], self_.options())
}

/// `addmm`
pub fn addmm_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    mat1: &Tensor,
    mat2: &Tensor,
    _beta: &Scalar,
    _alpha: &Scalar,
) -> Result<()> {
    check!(mat1.dim() == 2, "mat1 must be a matrix, got {}-D tensor", mat1.dim());
    check!(mat2.dim() == 2, "mat2 must be a matrix, got {}-D tensor", mat2.dim());
    let shape: [I; 2] = matrix_product_shape(mat1, mat2)?;
    same_dtype(mat1, mat2, "expected m1 and m2 to have the same dtype")?;
    check!(
        self_.dtype() == mat2.dtype(),
        "self and mat2 must have the same dtype, but got {} and {}",
        self_.dtype().short_name(),
        mat2.dtype().short_name()
    );
    infer_expand_geometry(&I::sizes_of(self_)?, &I::strides_of(self_)?, &shape)?;
    outs.set_output_raw_strided(0, &shape, &[], mat1.options())
}

fn batched_product_shape<I: SizeInt>(batch1: &Tensor, batch2: &Tensor) -> Result<[I; 3]> {
    check!(batch1.dim() == 3, "batch1 must be a 3D tensor");
    check!(batch2.dim() == 3, "batch2 must be a 3D tensor");
    let (a, b) = (I::sizes_of(batch1)?, I::sizes_of(batch2)?);
    check!(
        b[0].expect_eq(&a[0])? && b[1].expect_eq(&a[2])?,
        "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
        a[0],
        a[2],
        b[0],
        b[1]
    );
    same_dtype(batch1, batch2, "expected scalar type of batch1 and batch2 to be the same")?;
    Ok([a[0].clone(), a[1].clone(), b[2].clone()])
}

/// `bmm`
pub fn bmm_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, mat2: &Tensor) -> Result<()> {
    let shape: [I; 3] = batched_product_shape(self_, mat2)?;
    outs.set_output_raw_strided(0, &shape, &[], self_.options())
}

/// `baddbmm`
pub fn baddbmm_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    _beta: &Scalar,
    _alpha: &Scalar,
) -> Result<()> {
    let shape: [I; 3] = batched_product_shape(batch1, batch2)?;
    check!(
        self_.dtype() == batch1.dtype(),
        "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
        self_.dtype(),
        batch1.dtype(),
        batch2.dtype()
    );
    infer_expand_geometry(&I::sizes_of(self_)?, &I::strides_of(self_)?, &shape)?;
    outs.set_output_raw_strided(0, &shape, &[], batch1.options())
}

/// `dot`
pub fn dot_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, tensor: &Tensor) -> Result<()> {
    check!(
        self_.dim() == 1 && tensor.dim() == 1,
        "1D tensors expected, but got {}D and {}D tensors",
        self_.dim(),
        tensor.dim()
    );
    check!(
        self_.dtype() == tensor.dtype(),
        "dot : expected both vectors to have same dtype, but found {} and {}",
        self_.dtype().short_name(),
        tensor.dtype().short_name()
    );
    check!(
        I::numel_of(self_)?.expect_eq(&I::numel_of(tensor)?)?,
        "inconsistent tensor size, expected tensor {:?} and src {:?} to have the same number of elements, but got {} and \
         {} elements respectively",
        self_.sym_sizes(),
        tensor.sym_sizes(),
        self_.sym_numel(),
        tensor.sym_numel()
    );
    outs.set_output_raw_strided::<I>(0, &[], &[], self_.options())
}

fn triangle<I: SizeInt>(name: &str, outs: &mut StructuredOutputs, self_: &Tensor) -> Result<()> {
    check!(self_.dim() >= 2, "{name}: input tensor must have at least 2 dimensions");
    outs.set_output_raw_strided(0, &I::sizes_of(self_)?, &[], self_.options())
}

/// `triu`
pub fn triu_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, _diagonal: &SymInt) -> Result<()> {
    triangle::<I>("triu", outs, self_)
}

/// `tril`
pub fn tril_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, _diagonal: &SymInt) -> Result<()> {
    triangle::<I>("tril", outs, self_)
}
