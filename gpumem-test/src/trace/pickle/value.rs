//! Plain values, and the arena that holds them.

/// A plain value. Small and `Copy`: texts are places in the input and containers are indices into
/// an [`Arena`], so that a value that a pickle shares a million times is held once, and one that
/// contains itself does no harm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// An integer above `i64::MAX` that fits in 64 bits.
    Large(u64),
    /// An integer of more than 64 bits, which no snapshot has.
    Huge,
    Float(f64),
    /// A text as it is in the input: UTF-8, but lone surrogates are possible.
    Str(Span),
    /// A text of protocol 0 with its escapes resolved.
    Unescaped(TextIndex),
    Bytes(Span),
    Tuple(ContainerIndex),
    List(ContainerIndex),
    Dict(ContainerIndex),
}

// PERF: large snapshots have tens of millions of them.
const _: () = assert!(size_of::<Value>() == 16);

/// A part of the input: its first byte and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// Names a container of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContainerIndex(u32);

/// Names an unescaped text of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextIndex(u32);

impl Value {
    /// Two numbers that tell the place of a text from that of any other.
    pub(crate) fn text_place(self) -> (u32, u32) {
        match self {
            Self::Str(span) => (span.start, span.length),
            Self::Unescaped(index) => (index.0, u32::MAX),
            _ => (0, 0),
        }
    }

    /// The Python name of the value's type, for messages.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Large(_) | Self::Huge => "int",
            Self::Float(_) => "float",
            Self::Str(_) | Self::Unescaped(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::Tuple(_) => "tuple",
            Self::List(_) => "list",
            Self::Dict(_) => "dict",
        }
    }
}

/// The items of a container: a range of the arena's, with room to grow.
#[derive(Clone, Copy, Debug)]
struct Items {
    start: u32,
    length: u32,
    capacity: u32,
}

/// All containers and unescaped texts of one pickle.
#[derive(Debug)]
pub(crate) struct Arena<'a> {
    input: &'a [u8],
    // PERF: one list for the items of all containers. A pickler fills a container at once, so most
    // are never moved.
    items: Vec<Value>,
    containers: Vec<Items>,
    texts: Vec<Vec<u8>>,
}

impl<'a> Arena<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            items: Vec::new(),
            containers: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Keeps a container: the items of a list or tuple, or the keys and values of a dict in turn.
    pub(super) fn add(&mut self, items: &[Value]) -> ContainerIndex {
        self.containers.push(Items {
            start: self.items.len() as u32,
            length: items.len() as u32,
            capacity: items.len() as u32,
        });
        self.items.extend_from_slice(items);
        ContainerIndex(self.containers.len() as u32 - 1)
    }

    pub(super) fn add_text(&mut self, text: Vec<u8>) -> TextIndex {
        self.texts.push(text);
        TextIndex(self.texts.len() as u32 - 1)
    }

    /// Appends to a container.
    pub(super) fn extend(&mut self, container: ContainerIndex, items: &[Value]) {
        let place = &mut self.containers[container.0 as usize];
        let (start, length) = (place.start as usize, place.length as usize);
        let wanted = length + items.len();
        if wanted > place.capacity as usize {
            if start + place.capacity as usize != self.items.len() {
                // Moved to the end, with room to double: that keeps all moves together in
                // proportion to the length, however a hostile file alternates.
                place.start = self.items.len() as u32;
                self.items.extend_from_within(start..start + length);
            }
            let capacity = if length == 0 {
                wanted
            } else {
                wanted.max(2 * length)
            };
            place.capacity = capacity as u32;
            self.items
                .resize(place.start as usize + capacity, Value::None);
        }
        let end = place.start as usize + length;
        self.items[end..end + items.len()].copy_from_slice(items);
        place.length = wanted as u32;
    }

    /// The items of a list or tuple; of a dict, its keys and values in turn.
    pub(crate) fn items(&self, container: ContainerIndex) -> &[Value] {
        let place = self.containers[container.0 as usize];
        &self.items[place.start as usize..][..place.length as usize]
    }

    /// The keys and values of a dict, in order. A key may come twice: the last one counts.
    pub(crate) fn entries(
        &self,
        dict: ContainerIndex,
    ) -> impl DoubleEndedIterator<Item = (Value, Value)> + '_ {
        let (pairs, _) = self.items(dict).as_chunks::<2>();
        pairs.iter().map(|&[key, value]| (key, value))
    }

    /// The value of `key` in a dict.
    pub(crate) fn get(&self, dict: ContainerIndex, key: &str) -> Option<Value> {
        self.entries(dict)
            .rev()
            .find(|(found, _)| self.text(*found) == Some(key.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The bytes of a text.
    pub(crate) fn text(&self, value: Value) -> Option<&[u8]> {
        match value {
            Value::Str(span) => Some(self.bytes(span)),
            Value::Unescaped(index) => Some(&self.texts[index.0 as usize]),
            _ => None,
        }
    }

    /// A part of the input.
    pub(crate) fn bytes(&self, span: Span) -> &'a [u8] {
        &self.input[span.start as usize..][..span.length as usize]
    }
}
