//! Pickles, well-formed and hostile.

use super::opcode::Reason;
use super::{Arena, PickleError, Value, read};

/// `[1, -1, 2**40, True, None, 1.5, 'é', b'xy', (1, 2), {'k': [3]}]` in protocol 4.
const PLAIN: &[u8] = b"\x80\x04\x95\x3b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x88NG?\xf8\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94C\x02xy\x94K\x01K\x02\x86\x94}\x94\x8c\x01k\x94]\x94K\x03ase.";

/// The same in protocol 0, without the bytes.
const TEXT: &[u8] = b"(lp0\nI1\naI-1\naL1099511627776L\naI01\naNaF1.5\naV\xe9\np1\na(I1\nI2\ntp2\na(dp3\nVk\np4\n(lp5\nI3\nasa.";

fn list(bytes: &[u8]) -> (Vec<Value>, Arena<'_>) {
    let (value, arena) = read(bytes).expect("a plain pickle");
    let Value::List(items) = value else {
        panic!("a list, not {value:?}")
    };
    (arena.items(items).to_vec(), arena)
}

fn refused(bytes: &[u8]) -> PickleError {
    read(bytes).expect_err("an error")
}

#[test]
fn plain_values_of_protocol_4_are_read() {
    let (items, arena) = list(PLAIN);
    assert_eq!(
        items[..6],
        [
            Value::Int(1),
            Value::Int(-1),
            Value::Int(1 << 40),
            Value::Bool(true),
            Value::None,
            Value::Float(1.5),
        ]
    );
    assert_eq!(arena.text(items[6]), Some("é".as_bytes()));
    let Value::Bytes(bytes) = items[7] else {
        panic!("bytes")
    };
    assert_eq!(arena.bytes(bytes), b"xy");
    let Value::Tuple(pair) = items[8] else {
        panic!("a tuple")
    };
    assert_eq!(arena.items(pair), [Value::Int(1), Value::Int(2)]);
    let Value::Dict(dict) = items[9] else {
        panic!("a dict")
    };
    let Some(Value::List(inner)) = arena.get(dict, "k") else {
        panic!("a list under k")
    };
    assert_eq!(arena.items(inner), [Value::Int(3)]);
}

#[test]
fn plain_values_of_protocol_0_are_read() {
    let (items, arena) = list(TEXT);
    assert_eq!(
        items[..6],
        [
            Value::Int(1),
            Value::Int(-1),
            Value::Int(1 << 40),
            Value::Bool(true),
            Value::None,
            Value::Float(1.5)
        ]
    );
    assert_eq!(arena.text(items[6]), Some("é".as_bytes()));
    let Value::Dict(dict) = items[8] else {
        panic!("a dict")
    };
    assert!(matches!(arena.get(dict, "k"), Some(Value::List(_))));
}

#[test]
fn integers_of_any_width_keep_their_value_up_to_64_bits() {
    for (bytes, value) in [
        (&b"\x8a\x00."[..], Value::Int(0)),
        (b"\x8a\x01\xff.", Value::Int(-1)),
        (
            b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.",
            Value::Large(u64::MAX),
        ),
        (
            b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.",
            Value::Huge,
        ),
        (
            b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff.",
            Value::Int(-1),
        ),
        (b"L18446744073709551615L\n.", Value::Large(u64::MAX)),
        (
            b"I99999999999999999999999999999999999999999999999\n.",
            Value::Huge,
        ),
    ] {
        assert_eq!(read(bytes).expect("an integer").0, value, "{bytes:?}");
    }
    let mut long = vec![0x8a, 17];
    long.extend([0xff; 16]);
    long.extend([0, b'.']);
    assert_eq!(read(&long).expect("an integer").0, Value::Huge);
}

#[test]
fn what_names_or_calls_code_is_refused_by_name_and_offset() {
    // os.system('true'), in the spelling of protocol 0 and of protocol 4.
    let call = b"cos\nsystem\n(S'true'\ntR.";
    let error = refused(call);
    assert!(error.is_hostile());
    assert_eq!(
        error,
        PickleError::Refused {
            at: 0,
            name: "GLOBAL",
            reason: Reason::Executes
        }
    );
    assert_eq!(
        refused(b"\x80\x04\x8c\x02os\x8c\x06system\x93.").to_string(),
        "STACK_GLOBAL at byte 14 names or calls Python code, and a pickle never executes anything here"
    );
    for (opcode, name) in [
        (b'R', "REDUCE"),
        (b'b', "BUILD"),
        (b'i', "INST"),
        (b'o', "OBJ"),
        (0x81, "NEWOBJ"),
        (0x92, "NEWOBJ_EX"),
        (b'P', "PERSID"),
        (b'Q', "BINPERSID"),
        (0x82, "EXT1"),
        (0x83, "EXT2"),
        (0x84, "EXT4"),
        (0x8f, "EMPTY_SET"),
        (0x97, "NEXT_BUFFER"),
    ] {
        let error = refused(&[b'N', b'N', opcode, b'.']);
        assert!(
            error.to_string().starts_with(&format!("{name} at byte 2 ")),
            "{error}"
        );
    }
}

#[test]
fn a_claimed_length_beyond_the_input_is_truncation() {
    for bytes in [
        &b"X\xff\xff\xff\xffab"[..],
        b"B\xff\xff\xff\x7fab",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffab",
        b"\x8e\x00\x00\x00\x00\x00\x00\x00\x80ab",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\xffN.",
        b"\x8b\xff\xff\xff\xffab",
        b"N",
        b"",
        b"I12",
    ] {
        assert!(refused(bytes).is_truncation(), "{bytes:?}");
    }
}

#[test]
fn every_truncation_of_a_pickle_is_recognised() {
    for whole in [PLAIN, TEXT] {
        read(whole).expect("the whole pickle");
        for length in 0..whole.len() {
            let error = refused(&whole[..length]);
            assert!(error.is_truncation(), "cut at {length}: {error}");
        }
    }
}

#[test]
fn operations_that_do_not_fit_together_are_errors() {
    for (bytes, message) in [
        (&b"."[..], "a value is missing"),
        (b"t.", "a mark is missing"),
        (b"N(.", "a value is missing"),
        (b"N\x86.", "a value is missing"),
        (b"Na.", "a value is missing"),
        (b"NNa.", "items for something that is no list"),
        (b"](a.", "a value is missing"),
        (b"}(Nu.", "a key without a value"),
        (b"](NNu.", "entries for something that is no dict"),
        (b"h\x05.", "a value of the memo that was never put there"),
        (b"g-1\n.", "no number of a memo entry"),
        (b"Iten\n.", "no integer"),
        (b"I1_0\n.", "no integer"),
        (b"S'a\n.", "no text"),
        (b"V\\u12\n.", "no text"),
        (b"\x80\x06N.", "pickle protocol 6"),
        (b"{\"segments\": []}", "no operation 0x7b"),
    ] {
        let error = refused(bytes).to_string();
        assert!(error.contains(message), "{bytes:?}: {error}");
    }
}

#[test]
fn a_list_that_contains_itself_does_no_harm() {
    let (items, arena) = list(b"]q\x00h\x00a.");
    let Value::List(inner) = items[0] else {
        panic!("a list")
    };
    assert_eq!(arena.items(inner), items);
}

#[test]
fn shared_containers_are_held_once() {
    // Thirty lists, each of two references to the one before: a thousand million if expanded.
    let mut bytes = b"]q\x00".to_vec();
    for level in 1..=30 {
        bytes.extend([
            b']',
            b'q',
            level,
            b'(',
            b'h',
            level - 1,
            b'h',
            level - 1,
            b'e',
        ]);
    }
    bytes.push(b'.');
    let (items, _) = list(&bytes);
    assert_eq!(items.len(), 2);
    assert_eq!(items[0], items[1]);
}

#[test]
fn memo_numbers_out_of_turn_cost_nothing() {
    let (value, _) = read(b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff.").expect("a pickle");
    assert_eq!(value, Value::None);
}

#[test]
fn bombs_of_one_byte_operations_are_refused() {
    for (operation, message) in [
        (&b"]0"[..], "more containers"),
        (b"(", "nested more than"),
        (b"N", "more than 1048576 values"),
        (b"2", "more than 1048576 values"),
        (b"\x94", "more containers"),
    ] {
        let mut bytes = b"N".to_vec();
        bytes.extend(operation.repeat(1 << 21));
        let error = refused(&bytes).to_string();
        assert!(error.contains(message), "{operation:?}: {error}");
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut readable = 0;
    for round in 0..20_000 {
        let mut bytes = if round % 2 == 0 { PLAIN } else { TEXT }.to_vec();
        for _ in 0..1 + next() % 4 {
            let at = (next() % bytes.len() as u64) as usize;
            bytes[at] = next() as u8;
        }
        readable += usize::from(read(&bytes).is_ok());
    }
    assert!(
        0 < readable && readable < 20_000,
        "{readable} were readable"
    );
}

#[test]
fn containers_that_grow_by_turns_keep_their_items() {
    // Two lists, taken from the memo by turns and given one number each.
    let mut bytes = b"]q\x00]q\x01".to_vec();
    for number in 0..200 {
        bytes.extend([b'h', number % 2, b'K', number, b'a', b'0']);
    }
    bytes.extend(*b"h\x00h\x01\x86.");
    let (value, arena) = read(&bytes).expect("a pickle");
    let Value::Tuple(both) = value else {
        panic!("a tuple")
    };
    for (parity, list) in arena.items(both).iter().enumerate() {
        let Value::List(list) = *list else {
            panic!("a list")
        };
        let expected: Vec<Value> = (0..100)
            .map(|index| Value::Int(2 * index + parity as i64))
            .collect();
        assert_eq!(arena.items(list), expected);
    }
}
