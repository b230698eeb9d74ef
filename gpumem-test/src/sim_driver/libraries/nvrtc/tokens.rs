//! The words of CUDA C++.

/// The words and marks of a source, without comments, text in quotes (but for `"C"`) and the
/// preprocessor's lines; and whether one of those defines a macro that makes kernels.
pub(super) fn of<'a>(text: &'a str, by_macro: &mut bool) -> Vec<&'a str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut starts_line = true;
    while let Some(first) = rest.chars().next() {
        let length = if first == '\n' {
            starts_line = true;
            1
        } else if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '#' && starts_line {
            let length = directive_length(rest);
            let line = &rest[..length];
            let is_macro = line[1..].trim_start().starts_with("define");
            *by_macro |= is_macro && line.contains("__global__");
            length
        } else if first == '"' || first == '\'' {
            let length = quoted_length(rest, first);
            if &rest[..length] == "\"C\"" {
                tokens.push(&rest[..length]);
            }
            length
        } else {
            starts_line = false;
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let length = match rest.find(|letter| !is_word(letter)) {
                Some(0) => first.len_utf8(),
                Some(end) => end,
                None => rest.len(),
            };
            tokens.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a preprocessor's line with those that continue it.
fn directive_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    length
}

/// The length of quoted text with its quotes.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at, // a digit separator or an error, not a text
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
