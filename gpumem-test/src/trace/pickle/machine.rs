//! The stack machine that a pickle is a program for, without the operations that call code.

use super::PickleError;
use super::input::Input;
use super::memo::Memo;
use super::opcode;
use super::value::{Arena, Value};
use super::{number, text};

const HIGHEST_PROTOCOL: u8 = 5;
/// Values that may wait on the stack. Python's pickler hands containers over in batches of 1 000.
const STACK_LIMIT: usize = 1 << 20;
/// Marks that may be open. Python's pickler nests no deeper than its recursion limit.
const MARK_LIMIT: usize = 1 << 16;
/// Containers and memo entries that may be made for each byte of the input, and a few for free.
///
/// An operation of one byte makes one, so without a limit a small compressed file could ask for
/// some fifty times its expanded size. Snapshots make one for about 15 bytes.
const KEPT_FOR_FREE: usize = 4096;
const BYTES_A_KEPT_VALUE: usize = 4;

/// A pickle half read.
pub(super) struct Machine<'a> {
    input: Input<'a>,
    arena: Arena<'a>,
    memo: Memo,
    stack: Vec<Value>,
    /// Heights of the stack at the marks set.
    marks: Vec<usize>,
    /// Offset of the operation under way.
    at: usize,
    /// Containers and memo entries that may still be made.
    budget: usize,
}

type Step<T = ()> = Result<T, PickleError>;

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            input: Input::new(bytes),
            arena: Arena::new(bytes),
            memo: Memo::default(),
            stack: Vec::new(),
            marks: Vec::new(),
            at: 0,
            budget: bytes.len() / BYTES_A_KEPT_VALUE + KEPT_FOR_FREE,
        }
    }

    pub(super) fn run(mut self) -> Step<(Value, Arena<'a>)> {
        loop {
            self.at = self.input.at();
            let opcode = self.input.byte()?;
            if opcode == b'.' {
                let value = self.pop()?;
                return Ok((value, self.arena));
            }
            self.step(opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Step {
        match opcode {
            // What snapshots are made of comes first.
            b'j' => self.get(|input| input.u32().map(u64::from)),
            b'h' => self.get(|input| input.byte().map(u64::from)),
            0x94 => {
                let value = self.top()?;
                self.spend()?;
                self.memo.memoize(value);
                Ok(())
            }
            b'(' => {
                if self.marks.len() == MARK_LIMIT {
                    return Err(self.malformed("nested more than 65536 deep"));
                }
                self.marks.push(self.stack.len());
                Ok(())
            }
            0x80 => match self.input.byte()? {
                version if version <= HIGHEST_PROTOCOL => Ok(()),
                version => Err(PickleError::Protocol {
                    at: self.at,
                    version,
                }),
            },
            // A frame only says how much to read ahead.
            0x95 => {
                let length = self.input.u64()?;
                self.input.has(length)
            }
            b'0' => self.discard(),
            b'1' => {
                let height = self.unmark()?;
                self.stack.truncate(height);
                Ok(())
            }
            b'2' => {
                let value = self.top()?;
                self.push(value)
            }
            b'p' | b'q' | b'r' => self.put(opcode),
            b'g' => {
                let number = self.memo_number()?;
                self.get(|_| Ok(number))
            }
            b'a' => self.extend_list(self.stack.len().wrapping_sub(1)),
            b's' => self.extend_dict(self.stack.len().wrapping_sub(2)),
            b'e' => {
                let height = self.unmark()?;
                self.extend_list(height)
            }
            b'u' => {
                let height = self.unmark()?;
                self.extend_dict(height)
            }
            b']' | b'l' | b')' | b't' | 0x85..=0x87 | b'}' | b'd' => self.container(opcode),
            _ => match self.scalar(opcode)? {
                Some(value) => self.push(value),
                None => Err(match opcode::refusal(opcode) {
                    Some((name, reason)) => PickleError::Refused {
                        at: self.at,
                        name,
                        reason,
                    },
                    None => PickleError::Unknown {
                        at: self.at,
                        opcode,
                    },
                }),
            },
        }
    }

    /// The value of an operation that makes one that holds no others; `None` for another operation.
    fn scalar(&mut self, opcode: u8) -> Step<Option<Value>> {
        let input = &mut self.input;
        Ok(Some(match opcode {
            b'K' => Value::Int(input.byte()?.into()),
            b'M' => Value::Int(input.u16()?.into()),
            b'J' => Value::Int(input.i32()?.into()),
            0x8a => {
                let length = input.byte()?;
                number::from_bytes(input.take(length.into())?)
            }
            0x8b => {
                // A negative length becomes one that no input has.
                let length = input.u32()?;
                number::from_bytes(input.take(length.into())?)
            }
            b'I' => match input.line()? {
                b"00" => Value::Bool(false),
                b"01" => Value::Bool(true),
                line => number::from_decimal(line).ok_or(self.malformed("no integer"))?,
            },
            b'L' => {
                let line = input.line()?;
                let digits = line.strip_suffix(b"L").unwrap_or(line);
                number::from_decimal(digits).ok_or(self.malformed("no integer"))?
            }
            b'F' => {
                let float = number::float(input.line()?);
                Value::Float(float.ok_or(self.malformed("no float"))?)
            }
            b'G' => Value::Float(input.f64()?),
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            0x8c | b'U' => {
                let length = input.byte()?;
                Value::Str(input.span(length.into())?)
            }
            b'X' | b'T' => {
                let length = input.u32()?;
                Value::Str(input.span(length.into())?)
            }
            0x8d => {
                let length = input.u64()?;
                Value::Str(input.span(length)?)
            }
            b'V' => {
                let text = text::raw_unicode_escape(input.line()?);
                let text = text.ok_or(self.malformed("no text"))?;
                Value::Unescaped(self.arena.add_text(text))
            }
            b'S' => {
                let text = text::quoted(input.line()?);
                let text = text.ok_or(self.malformed("no text"))?;
                Value::Unescaped(self.arena.add_text(text))
            }
            b'C' => {
                let length = input.byte()?;
                Value::Bytes(input.span(length.into())?)
            }
            b'B' => {
                let length = input.u32()?;
                Value::Bytes(input.span(length.into())?)
            }
            0x8e | 0x96 => {
                let length = input.u64()?;
                Value::Bytes(input.span(length)?)
            }
            _ => return Ok(None),
        }))
    }

    /// Makes a container of what the stack has for it.
    fn container(&mut self, opcode: u8) -> Step {
        self.spend()?;
        let height = match opcode {
            b']' | b')' | b'}' => self.stack.len(),
            b'l' | b't' | b'd' => self.unmark()?,
            // TUPLE1 to TUPLE3.
            _ => self.stack.len().wrapping_sub(usize::from(opcode - 0x84)),
        };
        if height < self.floor() || height > self.stack.len() {
            return Err(self.malformed("a value is missing"));
        }
        let items = &self.stack[height..];
        if opcode == b'd' {
            self.check_pairs(items)?;
        }
        let container = self.arena.add(items);
        self.stack.truncate(height);
        self.push(match opcode {
            b']' | b'l' => Value::List(container),
            b'}' | b'd' => Value::Dict(container),
            _ => Value::Tuple(container),
        })
    }

    /// Appends what is above `height` to the list below it.
    fn extend_list(&mut self, height: usize) -> Step {
        match self.below(height)? {
            Value::List(list) => {
                self.arena.extend(list, &self.stack[height..]);
                self.stack.truncate(height);
                Ok(())
            }
            _ => Err(self.malformed("items for something that is no list")),
        }
    }

    /// Adds the keys and values above `height` to the dict below it.
    fn extend_dict(&mut self, height: usize) -> Step {
        match self.below(height)? {
            Value::Dict(dict) => {
                self.check_pairs(&self.stack[height..])?;
                self.arena.extend(dict, &self.stack[height..]);
                self.stack.truncate(height);
                Ok(())
            }
            _ => Err(self.malformed("entries for something that is no dict")),
        }
    }

    fn below(&self, height: usize) -> Step<Value> {
        if height <= self.floor() || height > self.stack.len() {
            return Err(self.malformed("a value is missing"));
        }
        Ok(self.stack[height - 1])
    }

    fn check_pairs(&self, items: &[Value]) -> Step {
        if items.len().is_multiple_of(2) {
            Ok(())
        } else {
            Err(self.malformed("a key without a value"))
        }
    }

    fn get(&mut self, number: impl FnOnce(&mut Input<'a>) -> Step<u64>) -> Step {
        let number = number(&mut self.input)?;
        match self.memo.get(number) {
            Some(value) => self.push(value),
            None => Err(self.malformed("a value of the memo that was never put there")),
        }
    }

    fn put(&mut self, opcode: u8) -> Step {
        let number = match opcode {
            b'q' => self.input.byte()?.into(),
            b'r' => self.input.u32()?.into(),
            _ => self.memo_number()?,
        };
        let value = self.top()?;
        self.spend()?;
        self.memo.put(number, value);
        Ok(())
    }

    fn memo_number(&mut self) -> Step<u64> {
        match number::from_decimal(self.input.line()?) {
            Some(Value::Int(number)) if number >= 0 => Ok(number as u64),
            _ => Err(self.malformed("no number of a memo entry")),
        }
    }

    fn spend(&mut self) -> Step {
        match self.budget.checked_sub(1) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.malformed("more containers than a snapshot of this length has")),
        }
    }

    fn push(&mut self, value: Value) -> Step {
        if self.stack.len() == STACK_LIMIT {
            return Err(self.malformed("more than 1048576 values at once"));
        }
        self.stack.push(value);
        Ok(())
    }

    /// The lowest height to which single values may be taken: those below belong to a mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Step<Value> {
        match self.stack.last() {
            Some(value) if self.stack.len() > self.floor() => Ok(*value),
            _ => Err(self.malformed("a value is missing")),
        }
    }

    fn pop(&mut self) -> Step<Value> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// `POP` takes a mark if nothing is above it.
    fn discard(&mut self) -> Step {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(drop)
    }

    /// Takes the last mark, and says at which height it was set.
    fn unmark(&mut self) -> Step<usize> {
        self.marks.pop().ok_or(self.malformed("a mark is missing"))
    }

    fn malformed(&self, what: &'static str) -> PickleError {
        PickleError::Malformed { at: self.at, what }
    }
}
