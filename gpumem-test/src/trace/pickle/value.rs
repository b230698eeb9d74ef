//! Plain values, and the arena that holds them.

/// A plain value. Small and `Copy`: containers are indexes into an [`Arena`], so that a value that
/// a pickle shares a million times is held once, and one that contains itself does no harm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// An integer above `i64::MAX` that fits in 64 bits.
    Large(u64),
    /// An integer of more than 64 bits, which no snapshot has.
    Huge,
    Float(f64),
    /// A text as it is in the input: UTF-8, but lone surrogates are possible.
    Str(&'a [u8]),
    /// A text of protocol 0 with its escapes resolved.
    Unescaped(TextIndex),
    Bytes(&'a [u8]),
    Tuple(ContainerIndex),
    List(ContainerIndex),
    Dict(ContainerIndex),
}

/// Names a container of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContainerIndex(u32);

/// Names an unescaped text of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextIndex(u32);

impl Value<'_> {
    /// The Python name of the value's type, for messages.
    pub(crate) fn type_name(&self) -> &'static str {
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

/// All containers and unescaped texts of one pickle.
#[derive(Debug, Default)]
pub(crate) struct Arena<'a> {
    containers: Vec<Vec<Value<'a>>>,
    texts: Vec<Vec<u8>>,
}

impl<'a> Arena<'a> {
    /// Keeps a container: the items of a list or tuple, or the keys and values of a dict in turn.
    pub(super) fn add(&mut self, items: Vec<Value<'a>>) -> ContainerIndex {
        self.containers.push(items);
        ContainerIndex(self.containers.len() as u32 - 1)
    }

    pub(super) fn add_text(&mut self, text: Vec<u8>) -> TextIndex {
        self.texts.push(text);
        TextIndex(self.texts.len() as u32 - 1)
    }

    pub(super) fn items_mut(&mut self, container: ContainerIndex) -> &mut Vec<Value<'a>> {
        &mut self.containers[container.0 as usize]
    }

    /// The items of a list or tuple; of a dict, its keys and values in turn.
    pub(crate) fn items(&self, container: ContainerIndex) -> &[Value<'a>] {
        &self.containers[container.0 as usize]
    }

    /// The keys and values of a dict, in order. A key may come twice: the last one counts.
    pub(crate) fn entries(
        &self,
        dict: ContainerIndex,
    ) -> impl DoubleEndedIterator<Item = (Value<'a>, Value<'a>)> + '_ {
        let (pairs, _) = self.items(dict).as_chunks::<2>();
        pairs.iter().map(|&[key, value]| (key, value))
    }

    /// The value of `key` in a dict.
    pub(crate) fn get(&self, dict: ContainerIndex, key: &str) -> Option<Value<'a>> {
        self.entries(dict)
            .rev()
            .find(|(found, _)| self.text(*found) == Some(key.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The bytes of a text.
    pub(crate) fn text(&self, value: Value<'a>) -> Option<&[u8]> {
        match value {
            Value::Str(text) => Some(text),
            Value::Unescaped(index) => Some(&self.texts[index.0 as usize]),
            _ => None,
        }
    }
}
