//! Fixtures are the output of CPython's `pickle` and of `pickletools`-style assembly by hand.

use super::*;
use crate::error::ErrorKind;

fn load(bytes: &[u8]) -> Pickle {
    Unpickler::new().load(bytes).unwrap()
}

fn root(bytes: &[u8]) -> Value {
    let pickle = load(bytes);
    pickle.get(pickle.root()).clone()
}

fn error(bytes: &[u8]) -> SerializeError {
    Unpickler::new().load(bytes).unwrap_err()
}

/// `[None, True, False, 7, 300, -1, 2**40, 2**70, 1.5, 'é', (1,), {'k': []}]` in protocols 0 to 5.
const PROTOCOLS: [&[u8]; 6] = [
    b"(lp0\nNaI01\naI00\naI7\naI300\naI-1\naL1099511627776L\naL1180591620717411303424L\naF1.5\naV\xe9\np1\na(I1\ntp2\na(dp3\nVk\np4\n(lp5\nsa.",
    b"]q\x00(NI01\nI00\nK\x07M,\x01J\xff\xff\xff\xffL1099511627776L\nL1180591620717411303424L\nG?\xf8\x00\x00\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa9q\x01(K\x01tq\x02}q\x03X\x01\x00\x00\x00kq\x04]q\x05se.",
    b"\x80\x02]q\x00(N\x88\x89K\x07M,\x01J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\t\x00\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa9q\x01K\x01\x85q\x02}q\x03X\x01\x00\x00\x00kq\x04]q\x05se.",
    b"\x80\x03]q\x00(N\x88\x89K\x07M,\x01J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\t\x00\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa9q\x01K\x01\x85q\x02}q\x03X\x01\x00\x00\x00kq\x04]q\x05se.",
    b"\x80\x04\x95=\x00\x00\x00\x00\x00\x00\x00]\x94(N\x88\x89K\x07M,\x01J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\t\x00\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94K\x01\x85\x94}\x94\x8c\x01k\x94]\x94se.",
    b"\x80\x05\x95=\x00\x00\x00\x00\x00\x00\x00]\x94(N\x88\x89K\x07M,\x01J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\t\x00\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94K\x01\x85\x94}\x94\x8c\x01k\x94]\x94se.",
];

#[test]
fn every_protocol_gives_the_same_value() {
    let reference = load(PROTOCOLS[2]);
    let items = reference.as_sequence(reference.root()).unwrap();
    assert_eq!(items.len(), 12);
    assert_eq!(reference.get(items[0]), &Value::None);
    assert_eq!(reference.as_int(items[6]), Some(1 << 40));
    assert_eq!(reference.get(items[7]), &Value::BigInt(vec![0, 0, 0, 0, 0, 0, 0, 0, 0x40]));
    assert_eq!(reference.as_str(items[9]), Some("é"));
    for (protocol, bytes) in PROTOCOLS.iter().enumerate() {
        let got = load(bytes);
        assert!(got.same_as(&reference), "protocol {protocol}");
    }
}

#[test]
fn calls_that_spell_builtin_values_become_them() {
    assert_eq!(
        root(b"\x80\x02c_codecs\nencode\nq\x00X\x03\x00\x00\x00a\xc3\xbfq\x01X\x06\x00\x00\x00latin1q\x02\x86q\x03Rq\x04."),
        Value::Bytes(vec![b'a', 0xff])
    );
    assert_eq!(
        root(b"\x80\x02c__builtin__\ncomplex\nq\x00G\x00\x00\x00\x00\x00\x00\x00\x00G?\xf0\x00\x00\x00\x00\x00\x00\x86q\x01Rq\x02."),
        Value::Complex(0.0, 1.0)
    );
    let pickle = load(b"\x80\x02c__builtin__\nset\nq\x00]q\x01(K\x01K\x02e\x85q\x02Rq\x03.");
    assert!(matches!(pickle.get(pickle.root()), Value::Set(items) if items.len() == 2));
    // Anything unusual stays a call.
    let pickle = load(b"\x80\x02c__builtin__\nset\n)R.");
    assert_eq!(pickle.as_call(pickle.root()).map(|c| c.1), Some("set"));
}

#[test]
fn protocol_4_and_5_values() {
    let pickle = load(b"\x80\x04\x95\t\x00\x00\x00\x00\x00\x00\x00\x8f\x94(K\x01K\x02\x90.");
    assert!(matches!(pickle.get(pickle.root()), Value::Set(items) if items.len() == 2));
    let pickle = load(b"\x80\x04(K\x01\x91\x94.");
    assert!(matches!(pickle.get(pickle.root()), Value::FrozenSet(items) if items.len() == 1));
    assert_eq!(root(b"\x80\x04C\x02ab."), Value::Bytes(b"ab".to_vec()));
    assert_eq!(root(b"\x80\x05\x96\x02\x00\x00\x00\x00\x00\x00\x00ab."), Value::ByteArray(b"ab".to_vec()));
    let pickle = load(b"\x80\x04\x8c\x0bcollections\x8c\x0bOrderedDict\x93)R.");
    assert_eq!(pickle.as_call(pickle.root()).map(|c| (c.0, c.1)), Some(("collections", "OrderedDict")));
}

#[test]
fn sharing_and_cycles_are_kept() {
    // x = []; [x, x]
    let pickle = load(b"\x80\x02]q\x00(]q\x01h\x01e.");
    let items = pickle.as_sequence(pickle.root()).unwrap();
    assert_eq!(items[0], items[1]);
    // r = []; r.append(r)
    let pickle = load(b"\x80\x02]q\x00h\x00a.");
    assert_eq!(pickle.as_sequence(pickle.root()).unwrap(), [pickle.root()]);
}

#[test]
fn python_2_strings() {
    assert_eq!(root(b"S'a\\x41'\n."), Value::Str("aA".into()));
    assert_eq!(root(b"U\x02\xff\xfe."), Value::Bytes(vec![0xff, 0xfe]));
    assert_eq!(root(b"T\x01\x00\x00\x00a."), Value::Str("a".into()));
}

#[test]
fn objects_need_the_permissive_policy() {
    // class C: pass -- C() with state {'a': 1}, protocol 2
    let bytes = b"\x80\x02cmod\nC\nq\x00)\x81q\x01}q\x02X\x01\x00\x00\x00aq\x03K\x01sb.";
    let refused = error(bytes);
    assert_eq!(refused.kind(), ErrorKind::Global);
    assert_eq!(refused.offset(), Some(2));
    assert!(refused.message().contains("mod.C"), "{refused}");
    for policy in [GlobalPolicy::any(), GlobalPolicy::weights_only().allow("mod.C")] {
        let pickle = Unpickler::new().policy(policy).load(bytes).unwrap();
        let Value::Object(object) = pickle.get(pickle.root()) else {
            panic!("not an object");
        };
        assert_eq!(object.construct, Construct::NewObj);
        assert_eq!(pickle.dict_get(object.state.unwrap(), "a").map(|v| pickle.as_int(v)), Some(Some(1)));
    }
    let any = Unpickler::new().policy(GlobalPolicy::any());
    // INST and OBJ of protocols 0 and 1, NEWOBJ_EX of 4.
    for bytes in [&b"(K\x01imod\nC\n."[..], b"(cmod\nC\nK\x01o.", b"\x80\x04cmod\nC\nK\x01\x85}\x92."] {
        let pickle = any.load(bytes).unwrap();
        assert_eq!(pickle.as_call(pickle.root()).map(|c| c.2.len()), Some(1));
    }
    assert!(matches!(any.load(b"P12\n.").unwrap().nodes().last(), Some(Value::PersistentId(_))));
}

#[test]
fn only_storages_are_referred_to() {
    assert!(error(b"X\x01\x00\x00\x00aQ.").message().contains("BINPERSID"));
    assert!(error(b"X\x06\x00\x00\x00module\x85Q.").message().contains("`module`"));
    assert!(error(b"P1\n.").message().contains("PERSID"));
    assert!(Unpickler::new().load(b"X\x07\x00\x00\x00storage\x85Q.").is_ok());
}

#[test]
fn opcodes_outside_checkpoints_are_named() {
    for (bytes, name) in [
        (&b"\x82\x01."[..], "EXT1"),
        (b"\x83\x01\x00.", "EXT2"),
        (b"\x84\x01\x00\x00\x00.", "EXT4"),
        (b"\x97.", "NEXT_BUFFER"),
        (b"N\x98.", "READONLY_BUFFER"),
    ] {
        assert!(error(bytes).message().contains(name), "{}", error(bytes));
    }
}

#[test]
fn damaged_pickles_are_errors() {
    let cases: &[&[u8]] = &[
        b"",
        b".",
        b"N",
        b"\xff.",
        b"\x80\x06N.",
        b"h\x00.",
        b"0.",
        b"e.",
        b"(e.",
        b"N(\x85.",
        b"K\x01K\x02a.",
        b"]K\x01K\x02s.",
        b"}(K\x01u.",
        b"NNR.",
        b"ccollections\nOrderedDict\nNR.",
        b"Nb.",
        b"]Nb.",
        b"(o.",
        b"X\xff\xff\xff\xffa.",
        b"X\x01\x00\x00\x00\xff.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x8b\xff\xff\xff\xff.",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\xffN.",
        b"g-1\n.",
        b"Fabc\n.",
        b"I\n.",
        b"NN\x93.",
        b"N(K\x01\x90.",
    ];
    for bytes in cases {
        let error = error(bytes);
        assert!(error.offset().is_some(), "{bytes:?}: {error}");
    }
}

#[test]
fn limits_hold() {
    let limits = Limits { max_nodes: 10, max_memo: 2, max_depth: 3, max_string: 4, ..Limits::default() };
    let unpickler = Unpickler::new().limits(limits);
    for bytes in [&b"]]]]]]]]]]]]]."[..], b"]\x94]\x94]\x94.", b"((((N.", b"X\x05\x00\x00\x00abcde."] {
        assert_eq!(unpickler.load(bytes).unwrap_err().kind(), ErrorKind::Limit);
    }
}

#[test]
fn copying_the_same_list_again_and_again_is_refused() {
    // One list of 1000 items made into 1000 sets.
    let mut bytes = b"cbuiltins\nset\nq\x00](".to_vec();
    bytes.resize(bytes.len() + 1000, b'N');
    bytes.extend_from_slice(b"e\x85q\x01(");
    for _ in 0..1000 {
        bytes.extend_from_slice(b"h\x00h\x01R");
    }
    bytes.extend_from_slice(b"t.");
    assert_eq!(error(&bytes).kind(), ErrorKind::Limit);
}

#[test]
fn says_how_much_it_read() {
    let (_, nbytes) = Unpickler::new().load_prefix(b"K\x01.K\x02.").unwrap();
    assert_eq!(nbytes, 3);
}
