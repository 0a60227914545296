use c10::{BFloat16, DimVector, Element, ErrorKind, Result, Scalar, ScalarType, Tensor};
use iter::{IndexPlan, TensorIterator, TensorIteratorConfig};

use crate::test_tensor::{
    as_strided, element, elements, kernel, layouts, set_elements, tensor, with_threads, zeros,
};

type Gather = fn(&Tensor, i64, &Tensor, &[Tensor]) -> Result<()>;
type Scatter = fn(i64, &Tensor, &Tensor, &[Tensor]) -> Result<()>;
type ScatterValue = fn(i64, &Tensor, &Scalar, &[Tensor]) -> Result<()>;
type IndexAdd = fn(i64, &Tensor, &Tensor, &Scalar, &[Tensor]) -> Result<()>;
type MaskedFill = fn(&TensorIterator, &Scalar) -> Result<()>;
type Nonzero = fn(&Tensor) -> Result<Tensor>;
type Index = fn(&IndexPlan, &[Tensor]) -> Result<()>;
type IndexPut = fn(&IndexPlan, bool, &[Tensor]) -> Result<()>;

/// The row-major position of an index with one coordinate replaced.
fn replaced(sizes: &[i64], of: &[i64], linear: i64, dim: usize, value: i64) -> i64 {
    let mut rest = linear;
    let mut coordinates = vec![0; of.len()];
    for d in (0..of.len()).rev() {
        coordinates[d] = rest % of[d];
        rest /= of[d];
    }
    if let Some(at) = coordinates.get_mut(dim) {
        *at = value;
    }
    coordinates.iter().zip(sizes).fold(0, |linear, (at, size)| linear * size + at)
}

/// Shapes of a tensor and of an index into it along a dimension.
const CASES: [(&[i64], &[i64], usize); 8] = [
    (&[], &[], 0),
    (&[6], &[9], 0),
    (&[6], &[0], 0),
    (&[4, 7], &[9, 5], 0),
    (&[4, 7], &[3, 9], 1),
    (&[3, 5, 6], &[3, 8, 4], 1),
    (&[3, 5, 6], &[2, 5, 11], 2),
    (&[20, 150], &[150, 150], 0),
];

fn index_tensors(shape: &[i64], size: i64) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    for (_, index) in layouts(shape, ScalarType::Long) {
        set_elements(&index, |i| (i * 7919 + 3) % size);
        tensors.push(index);
    }
    let narrow = zeros(shape, ScalarType::Int);
    set_elements(&narrow, |i| ((i * 31 + 1) % size) as i32);
    tensors.push(narrow);
    tensors
}

fn index_at(index: &Tensor, i: i64) -> i64 {
    match index.dtype() {
        ScalarType::Int => i64::from(element::<i32>(index, i)),
        _ => element::<i64>(index, i),
    }
}

#[test]
fn gather_and_scatter_in_every_layout() {
    fn check<T: Element>() {
        for (sizes, index_shape, dim) in CASES {
            let size = sizes.get(dim).copied().unwrap_or(1);
            for index in index_tensors(index_shape, size) {
                for (name, data) in layouts(sizes, T::SCALAR_TYPE) {
                    set_elements(&data, |i| T::cast_from(i % 251));
                    let out = zeros(index_shape, T::SCALAR_TYPE);
                    let gather = kernel::<Gather>("gather_kernel");
                    gather(&data, dim as i64, &index, std::slice::from_ref(&out)).unwrap();
                    for i in 0..index.numel().unwrap() {
                        let from = replaced(sizes, index_shape, i, dim, index_at(&index, i));
                        assert_eq!(
                            element::<T>(&out, i),
                            element::<T>(&data, from),
                            "{name} {sizes:?} {dim}"
                        );
                    }
                    if name == "expanded" {
                        continue;
                    }
                    // Later positions along the dimension win.
                    let src = zeros(index_shape, T::SCALAR_TYPE);
                    set_elements(&src, |i| T::cast_from((i * 3 + 1) % 251));
                    let mut expected = elements::<T>(&data);
                    for i in 0..index.numel().unwrap() {
                        let to = replaced(sizes, index_shape, i, dim, index_at(&index, i));
                        expected[to as usize] = element(&src, i);
                    }
                    let scatter = kernel::<Scatter>("scatter_kernel");
                    scatter(dim as i64, &index, &src, std::slice::from_ref(&data)).unwrap();
                    assert_eq!(elements::<T>(&data), expected, "{name} {sizes:?} {dim}");
                    let fill = kernel::<ScatterValue>("scatter_value_kernel");
                    fill(dim as i64, &index, &Scalar::Int(1), std::slice::from_ref(&data)).unwrap();
                    for i in 0..index.numel().unwrap() {
                        let to = replaced(sizes, index_shape, i, dim, index_at(&index, i));
                        expected[to as usize] = T::ONE;
                    }
                    assert_eq!(elements::<T>(&data), expected, "{name} {sizes:?} {dim}");
                }
            }
        }
    }
    check::<u8>();
    check::<BFloat16>();
    check::<f32>();
    check::<i64>();
    check::<c10::Complex<f64>>();
}

#[test]
fn scatter_add_adds_every_duplicate_in_one_order() {
    for (sizes, index_shape, dim) in CASES {
        let size = sizes.get(dim).copied().unwrap_or(1);
        for index in index_tensors(index_shape, size) {
            let src = zeros(index_shape, ScalarType::Float);
            set_elements(&src, |i| 0.1 * (i as f32) - 7.0);
            let mut expected = vec![1.0_f64; sizes.iter().product::<i64>() as usize];
            for i in 0..index.numel().unwrap() {
                let to = replaced(sizes, index_shape, i, dim, index_at(&index, i));
                expected[to as usize] += f64::from(element::<f32>(&src, i));
            }
            let run = |threads| {
                let out = zeros(sizes, ScalarType::Float);
                set_elements(&out, |_| 1.0_f32);
                let add = kernel::<Scatter>("scatter_add_kernel");
                with_threads(threads, || add(dim as i64, &index, &src, std::slice::from_ref(&out)).unwrap());
                elements::<f32>(&out)
            };
            let found = run(1);
            assert_eq!(found, run(3));
            for (found, expected) in found.iter().zip(expected) {
                assert!((f64::from(*found) - expected).abs() <= 1e-4 * (1.0 + expected.abs()));
            }
        }
    }
    let out = tensor(&[3], &[1_i64, 2, 3]);
    let add = kernel::<Scatter>("scatter_add_kernel");
    add(0, &tensor(&[3], &[0_i64, 2, 0]), &tensor(&[3], &[10_i64, 20, 30]), std::slice::from_ref(&out))
        .unwrap();
    assert_eq!(elements::<i64>(&out), [41, 2, 23]);
}

#[test]
fn index_select_and_index_add() {
    for (sizes, dim) in
        [(&[6][..], 0), (&[4, 7], 0), (&[4, 7], 1), (&[3, 5, 6], 1), (&[3, 5, 6], 0), (&[3, 5, 6], 2)]
    {
        let n = 8;
        for index in index_tensors(&[n], sizes[dim]) {
            let mut shape = sizes.to_vec();
            shape[dim] = n;
            for (name, data) in layouts(sizes, ScalarType::Double) {
                set_elements(&data, |i| i as f64);
                for (_, out) in
                    layouts(&shape, ScalarType::Double).into_iter().filter(|(name, _)| *name != "expanded")
                {
                    let select = kernel::<Gather>("index_select_kernel");
                    select(&data, dim as i64, &index, std::slice::from_ref(&out)).unwrap();
                    let inner: i64 = sizes[dim + 1..].iter().product();
                    for i in 0..out.numel().unwrap() {
                        let from = replaced(sizes, &shape, i, dim, index_at(&index, i / inner % n));
                        assert_eq!(
                            element::<f64>(&out, i),
                            element::<f64>(&data, from),
                            "{name} {sizes:?} {dim}"
                        );
                    }
                    if name == "expanded" {
                        continue;
                    }
                    let mut expected = elements::<f64>(&data);
                    for i in 0..out.numel().unwrap() {
                        let to = replaced(sizes, &shape, i, dim, index_at(&index, i / inner % n));
                        expected[to as usize] += 2.0 * element::<f64>(&out, i);
                    }
                    let add = kernel::<IndexAdd>("index_add_kernel");
                    add(dim as i64, &index, &out, &Scalar::Float(2.0), std::slice::from_ref(&data)).unwrap();
                    assert_eq!(elements::<f64>(&data), expected, "{name} {sizes:?} {dim}");
                }
            }
        }
    }
}

#[test]
fn indices_out_of_bounds_are_refused_before_anything_is_touched() {
    let data = tensor(&[3], &[1.0_f32, 2.0, 3.0]);
    let out = zeros(&[1], ScalarType::Float);
    let src = tensor(&[1], &[9.0_f32]);
    for bad in [3, 5, -1, i64::MAX, i64::MIN] {
        let index = tensor(&[1], &[bad]);
        let message = format!("index {bad} is out of bounds for dimension 0 with size 3");
        let outs = std::slice::from_ref(&data);
        for result in [
            kernel::<Gather>("gather_kernel")(&data, 0, &index, std::slice::from_ref(&out)),
            kernel::<Scatter>("scatter_kernel")(0, &index, &src, outs),
            kernel::<Scatter>("scatter_add_kernel")(0, &index, &src, outs),
            kernel::<ScatterValue>("scatter_value_kernel")(0, &index, &Scalar::Int(7), outs),
        ] {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Runtime, message.as_str()));
        }
        for result in [
            kernel::<Gather>("index_select_kernel")(&data, 0, &index, std::slice::from_ref(&out)),
            kernel::<IndexAdd>("index_add_kernel")(0, &index, &src, &Scalar::Int(1), outs),
        ] {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Index, "index out of range in self"));
        }
        assert_eq!(elements::<f32>(&data), [1.0, 2.0, 3.0]);
    }
}

/// The plan of `data[:, i0, i1, :]` where the index tensors are vectors.
fn plan(data: &Tensor, indices: [&Tensor; 2], other: &Tensor, data_first: bool) -> IndexPlan {
    let (sizes, strides) = (data.sizes().unwrap(), data.strides().unwrap());
    let n = indices[0].numel().unwrap();
    let shape = [sizes[0], n, sizes[3]];
    let restrided = as_strided(data, &shape, &[strides[0], 0, strides[3]], data.storage_offset().unwrap());
    let vectors = indices.map(|index| as_strided(index, &shape, &[0, 1, 0], 0));
    let config =
        TensorIteratorConfig::new().op_name("index").check_all_same_dtype(false).check_mem_overlap(false);
    let config = config.resize_outputs(false);
    let config = if data_first {
        config.add_output(&restrided).add_input(other)
    } else {
        config.add_output(other).add_input(&restrided)
    };
    let iter = config.add_input(&vectors[0]).add_input(&vectors[1]).build_standalone().unwrap();
    let item_size = data.item_size() as i64;
    IndexPlan {
        iter,
        indexed_sizes: DimVector::from_slice(&sizes[1..3]),
        indexed_strides: strides[1..3].iter().map(|stride| stride * item_size).collect(),
    }
}

#[test]
fn tensors_of_indices_read_and_write() {
    for (name, data) in layouts(&[3, 4, 5, 6], ScalarType::Float) {
        set_elements(&data, |i| i as f32);
        let i0 = tensor(&[7], &[0_i64, 3, -1, 1, 3, -4, 0]);
        let i1 = tensor(&[7], &[4_i64, 0, -5, 2, 0, 1, 4]);
        let place = |a: i64, k: i64, b: i64| {
            let wrap = |index: i64, size: i64| if index < 0 { index + size } else { index };
            let (y, x) = (wrap(element(&i0, k), 4), wrap(element(&i1, k), 5));
            ((a * 4 + y) * 5 + x) * 6 + b
        };
        let out = zeros(&[3, 7, 6], ScalarType::Float);
        let read = plan(&data, [&i0, &i1], &out, false);
        kernel::<Index>("index_kernel")(&read, &[]).unwrap();
        for i in 0..out.numel().unwrap() {
            let from = place(i / 42, i / 6 % 7, i % 6);
            assert_eq!(element::<f32>(&out, i), element::<f32>(&data, from), "{name}");
        }
        if name == "expanded" {
            continue;
        }
        let values = zeros(&[3, 7, 6], ScalarType::Float);
        set_elements(&values, |i| 1000.0 + i as f32);
        for accumulate in [true, false] {
            let mut expected = elements::<f32>(&data);
            for i in 0..values.numel().unwrap() {
                let to = place(i / 42, i / 6 % 7, i % 6) as usize;
                let value = element::<f32>(&values, i);
                expected[to] = if accumulate { expected[to] + value } else { value };
            }
            let write = plan(&data, [&i0, &i1], &values, true);
            kernel::<IndexPut>("index_put_kernel")(&write, accumulate, &[]).unwrap();
            assert_eq!(elements::<f32>(&data), expected, "{name} {accumulate}");
        }
    }
}

#[test]
fn tensors_of_indices_are_checked() {
    let data = zeros(&[3, 4, 5, 6], ScalarType::Float);
    let out = zeros(&[3, 2, 6], ScalarType::Float);
    let good = tensor(&[2], &[0_i64, 1]);
    for (bad, dim, size) in [(5, 1, 5), (-6, 1, 5), (4, 0, 4), (i64::MIN, 0, 4), (i64::MAX, 1, 5)] {
        let bad_index = tensor(&[2], &[0_i64, bad]);
        let indices = if dim == 0 { [&bad_index, &good] } else { [&good, &bad_index] };
        let message = format!("index {bad} is out of bounds for dimension {dim} with size {size}");
        let error = kernel::<Index>("index_kernel")(&plan(&data, indices, &out, false), &[]).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Index, message.as_str()));
        let error =
            kernel::<IndexPut>("index_put_kernel")(&plan(&data, indices, &out, true), true, &[]).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Index, message.as_str()));
    }
}

#[test]
fn masked_fill_writes_where_the_mask_is_true() {
    for sizes in [&[][..], &[9], &[300], &[5, 70], &[3, 4, 5]] {
        for (name, data) in
            layouts(sizes, ScalarType::BFloat16).into_iter().filter(|(name, _)| *name != "expanded")
        {
            for (_, mask) in layouts(sizes, ScalarType::Bool) {
                set_elements(&data, |i| BFloat16::from_f32(i as f32));
                set_elements(&mask, |i| i % 3 == 1);
                let iter = TensorIteratorConfig::new()
                    .check_all_same_dtype(false)
                    .add_output(&data)
                    .add_input(&mask)
                    .build_standalone()
                    .unwrap();
                kernel::<MaskedFill>("masked_fill_kernel")(&iter, &Scalar::Float(-2.5)).unwrap();
                for i in 0..data.numel().unwrap() {
                    let expected =
                        if element::<bool>(&mask, i) { -2.5 } else { BFloat16::from_f32(i as f32).to_f32() };
                    assert_eq!(element::<BFloat16>(&data, i).to_f32(), expected, "{name} {sizes:?}");
                }
            }
        }
    }
}

#[test]
fn nonzero_lists_positions_in_row_major_order() {
    for sizes in [&[][..], &[0], &[9], &[100_000], &[5, 70], &[3, 4, 5], &[70, 1000]] {
        for (name, data) in layouts(sizes, ScalarType::Float) {
            set_elements(&data, |i| if i % 5 == 2 { -1.0_f32 } else { -0.0 });
            for threads in [1, 3] {
                let found = with_threads(threads, || kernel::<Nonzero>("nonzero_kernel")(&data).unwrap());
                let mut expected = Vec::new();
                for i in 0..data.numel().unwrap() {
                    if element::<f32>(&data, i) == 0.0 {
                        continue;
                    }
                    let mut coordinates = vec![0; sizes.len()];
                    let mut rest = i;
                    for d in (0..sizes.len()).rev() {
                        coordinates[d] = rest % sizes[d];
                        rest /= sizes[d];
                    }
                    expected.extend(coordinates);
                }
                assert_eq!(found.size(1).unwrap(), sizes.len() as i64);
                assert_eq!(elements::<i64>(&found), expected, "{name} {sizes:?}");
            }
        }
    }
    let found = kernel::<Nonzero>("nonzero_kernel")(&tensor(&[], &[true])).unwrap();
    assert_eq!(found.sizes().unwrap(), [1, 0]);
}
