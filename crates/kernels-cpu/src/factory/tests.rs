use c10::{Complex, Element, Scalar, ScalarType};
use iter::TensorIterator;

use crate::test_tensor::{elements, kernel, layouts, tensor, with_threads, zeros};

type Fill = fn(&TensorIterator, &Scalar) -> c10::Result<()>;
type Arange = fn(&Scalar, &Scalar, &[c10::Tensor]) -> c10::Result<()>;
type Linspace = fn(&Scalar, &Scalar, i64, &[c10::Tensor]) -> c10::Result<()>;

#[test]
fn fill_writes_every_element_and_no_other() {
    fn check<T: Element>() {
        for sizes in [&[][..], &[0], &[7], &[40_000], &[3, 5, 70]] {
            for (name, out) in layouts(sizes, T::SCALAR_TYPE) {
                for value in [0, 1, 5] {
                    if name == "expanded" {
                        continue;
                    }
                    let iter = TensorIterator::nullary_op(&out).unwrap();
                    kernel::<Fill>("fill_kernel")(&iter, &Scalar::Int(value)).unwrap();
                    assert!(
                        elements::<T>(&out).iter().all(|&x| x == T::cast_from(value)),
                        "{name} {sizes:?}"
                    );
                }
            }
        }
    }
    for dtype in ScalarType::ALL.iter().copied() {
        let _ = c10::dispatch_dtypes!(dtype, "test", EVERY, |T| check::<T>());
    }
}

#[test]
fn fill_leaves_gaps_alone_and_refuses_overflow() {
    let base = zeros(&[10], ScalarType::Short);
    let view = crate::test_tensor::as_strided(&base, &[3], &[2], 1);
    let iter = TensorIterator::nullary_op(&view).unwrap();
    kernel::<Fill>("fill_kernel")(&iter, &Scalar::Int(300)).unwrap();
    assert_eq!(elements::<i16>(&base), [0, 300, 0, 300, 0, 300, 0, 0, 0, 0]);
    let byte = zeros(&[1], ScalarType::Char);
    let iter = TensorIterator::nullary_op(&byte).unwrap();
    let error = kernel::<Fill>("fill_kernel")(&iter, &Scalar::Int(300)).unwrap_err();
    assert!(error.message().contains("without overflow"), "{}", error.message());
    let half = zeros(&[1], ScalarType::Half);
    let iter = TensorIterator::nullary_op(&half).unwrap();
    kernel::<Fill>("fill_kernel")(&iter, &Scalar::Float(1e6)).unwrap();
    assert!(elements::<c10::Half>(&half)[0].is_infinite());
}

#[test]
fn arange_counts() {
    let out = zeros(&[5], ScalarType::Long);
    let arange = kernel::<Arange>("arange_kernel");
    arange(&Scalar::Int(3), &Scalar::Int(-2), std::slice::from_ref(&out)).unwrap();
    assert_eq!(elements::<i64>(&out), [3, 1, -1, -3, -5]);
    let out = zeros(&[100_000], ScalarType::Float);
    for threads in [1, 3] {
        with_threads(threads, || {
            arange(&Scalar::Float(0.5), &Scalar::Float(0.1), std::slice::from_ref(&out)).unwrap();
        });
        for (i, &x) in elements::<f32>(&out).iter().enumerate() {
            assert!((f64::from(x) - (0.5 + 0.1 * i as f64)).abs() <= f64::from(f32::EPSILON) * f64::from(x));
        }
    }
}

#[test]
fn linspace_is_exact_at_both_ends() {
    let linspace = kernel::<Linspace>("linspace_kernel");
    let out = zeros(&[8], ScalarType::Int);
    linspace(&Scalar::Int(-5), &Scalar::Int(9), 8, std::slice::from_ref(&out)).unwrap();
    assert_eq!(elements::<i32>(&out), [-5, -3, -1, 1, 3, 5, 7, 9]);
    let out = zeros(&[7], ScalarType::Byte);
    linspace(&Scalar::Int(0), &Scalar::Int(10), 7, std::slice::from_ref(&out)).unwrap();
    assert_eq!(elements::<u8>(&out), [0, 1, 3, 5, 6, 8, 10]);
    let out = zeros(&[1], ScalarType::Float);
    linspace(&Scalar::Int(3), &Scalar::Int(9), 1, std::slice::from_ref(&out)).unwrap();
    assert_eq!(elements::<f32>(&out), [3.0]);
    let out = zeros(&[100_001], ScalarType::Double);
    linspace(&Scalar::Float(0.3), &Scalar::Float(7.7), 100_001, std::slice::from_ref(&out)).unwrap();
    let found = elements::<f64>(&out);
    assert_eq!((found[0], found[100_000]), (0.3, 7.7));
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn item_reads_what_is_there() {
    let item = kernel::<fn(&c10::Tensor) -> c10::Result<Scalar>>("local_scalar_dense_kernel");
    assert!(item(&tensor(&[], &[2.5_f32])).unwrap().equal(2.5).unwrap());
    assert!(item(&tensor(&[1, 1], &[true])).unwrap().to_bool().unwrap());
    assert_eq!(
        item(&tensor(&[1], &[Complex::new(1.0_f64, 2.0)])).unwrap().to_complex().unwrap(),
        Complex::new(1.0, 2.0)
    );
    assert_eq!(item(&tensor(&[1], &[u64::MAX])).unwrap().to::<u64>().unwrap(), u64::MAX);
}
