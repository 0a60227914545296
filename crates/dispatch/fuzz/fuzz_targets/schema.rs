//! Any bytes: the schema parser must not panic, and what it accepts must survive printing.
#![no_main]

use dispatch::schema::{FunctionSchema, OperatorName, Type};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = OperatorName::parse(text) {
        assert!(error.to_string().len() < 2000);
    }
    if let Ok(ty) = Type::parse(text) {
        assert_eq!(Type::parse(&ty.to_string()), Ok(ty));
    }
    match FunctionSchema::parse(text) {
        Ok(schema) => {
            assert_eq!(FunctionSchema::parse(&schema.to_string()).as_ref(), Ok(&schema));
            let resolved = schema.resolved();
            assert_eq!(FunctionSchema::parse(&resolved.to_string()).as_ref(), Ok(&resolved));
            assert!(schema.is_backward_compatible_with(&schema));
            let _ = schema.check_valid();
        }
        Err(error) => {
            assert!(error.to_string().len() < 2000 && error.position().is_some_and(|p| p <= text.len()))
        }
    }
});
