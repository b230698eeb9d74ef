//! A picture of a heap: one row for each segment, its blocks in address order.

use std::fmt::Write as _;

use crate::bytes::Bytes;
use crate::heap_map::{BlockState, HeapMap, SegmentState, Usage};

/// The picture's width; the bar of the largest segment begins behind the labels and ends before
/// the margin. All in pixels.
const WIDTH: u32 = 760;
const LABELS: u32 = 150;
const MARGIN: u32 = 12;
const BAR: u32 = WIDTH - LABELS - MARGIN;
const HEAD: u32 = 36;
const ROW: u32 = 32;
const BAR_HEIGHT: u32 = 22;
const FOOT: u32 = 30;
/// A block that is narrower than this has no size written in it.
const LEAST_FOR_TEXT: f64 = 62.0;
/// Segments that are drawn; the others are counted.
const MOST_SEGMENTS: usize = 32;

/// Readable on light and on dark pages.
const STYLE: &str = "\
.bg{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}\
.in{fill:#fff;font-size:11px}.held{fill:#0a6aa6}.waste{fill:#7db7dc}.wait{fill:#c77700}\
.free{fill:#d8dee4}.whole{fill:#eef1f4}.edge{fill:none;stroke:#57606a}.gap{stroke:#fff;stroke-width:1}\
.note{fill:#57606a}\
@media(prefers-color-scheme:dark){.bg{fill:#0d1117}text{fill:#e6edf3}.free{fill:#3d444d}\
.whole{fill:#21262d}.edge{stroke:#9198a1}.gap{stroke:#0d1117}.note{fill:#9198a1}.in{fill:#fff}}";

/// What a part of a bar shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Held,
    Waste,
    Pending,
    /// Free, in a segment that something else of is held.
    Free,
    /// A segment of which nothing is held.
    WholeFree,
}

impl Part {
    const ALL: [Self; 5] = [
        Self::Held,
        Self::Waste,
        Self::Pending,
        Self::Free,
        Self::WholeFree,
    ];

    fn class(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Waste => "waste",
            Self::Pending => "wait",
            Self::Free => "free",
            Self::WholeFree => "whole",
        }
    }

    fn legend(self) -> &'static str {
        match self {
            Self::Held => "asked for",
            Self::Waste => "rounded up",
            Self::Pending => "freed, a stream may use it",
            Self::Free => "free beside held blocks",
            Self::WholeFree => "wholly free segment",
        }
    }
}

/// Draws all segments of a heap and their blocks, as an SVG image that needs nothing else.
///
/// Each segment is a row whose bar is as long as its share of the largest one; blocks stand in
/// address order, as wide as they are large. Of a held block the bytes asked for and those that
/// rounding added differ in colour. `title` stands above.
///
/// ```
/// # use gpumem_test::{HeapMap, heap_svg};
/// let picture = heap_svg(&HeapMap::default(), "after the first step");
/// assert!(picture.starts_with("<svg") && picture.contains("nothing is reserved"));
/// ```
pub fn heap_svg(map: &HeapMap, title: &str) -> String {
    let drawn = &map.segments[..map.segments.len().min(MOST_SEGMENTS)];
    let left_out = map.segments.len() - drawn.len();
    let rows = drawn.len().max(1) as u32 + u32::from(left_out > 0);
    let height = HEAD + ROW * rows + FOOT;
    let largest = drawn.iter().map(|segment| segment.size).max();
    let mut picture = Picture {
        svg: String::new(),
        largest: largest.unwrap_or(1).max(1),
        shown: Vec::new(),
    };
    picture.begin(height, title);
    for (row, segment) in (0..).zip(drawn) {
        picture.segment(HEAD + ROW * row, segment);
    }
    let note = match (drawn.is_empty(), left_out) {
        (true, _) => Some("nothing is reserved".to_owned()),
        (_, 0) => None,
        (_, count) => Some(format!("and {count} more segments")),
    };
    if let Some(note) = note {
        let y = HEAD + ROW * (rows - 1) + 15;
        picture.text(f64::from(MARGIN), y, "note", &note);
    }
    picture.legend(height - 12);
    picture.svg.push_str("</svg>\n");
    picture.svg
}

struct Picture {
    svg: String,
    /// Bytes of the longest bar.
    largest: u64,
    /// The parts that the legend explains.
    shown: Vec<Part>,
}

impl Picture {
    fn begin(&mut self, height: u32, title: &str) {
        let title = escaped(title);
        self.push(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
             <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
        ));
        self.push(format_args!(
            "<text class=\"title\" x=\"{MARGIN}\" y=\"21\">{title}</text>\n"
        ));
    }

    fn segment(&mut self, y: u32, segment: &SegmentState) {
        let name = format!("{}{}", Bytes::new(segment.size), sort(segment));
        self.text(f64::from(MARGIN), y + 15, "label", &name);
        let is_idle = (segment.blocks.iter()).all(|block| block.usage == Usage::Free);
        for block in &segment.blocks {
            let from = block.address.0.saturating_sub(segment.address.0);
            self.block(y, from, block, is_idle);
        }
        let width = self.pixels(segment.size);
        self.push(format_args!(
            "<rect class=\"edge\" x=\"{LABELS}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{BAR_HEIGHT}\"/>\n"
        ));
    }

    fn block(&mut self, y: u32, from: u64, block: &BlockState, is_idle: bool) {
        let size = Bytes::new(block.size);
        match block.usage {
            Usage::Free if is_idle => {
                let words = format!("{size} free, of a segment of which nothing is held");
                self.part(y, from, block.size, Part::WholeFree, &words);
            }
            Usage::Free => {
                let words = format!("{size} free, in a segment of which other blocks are held");
                self.part(y, from, block.size, Part::Free, &words);
            }
            Usage::PendingFree => {
                let words = format!("{size} freed, which a stream may still use");
                self.part(y, from, block.size, Part::Pending, &words);
            }
            Usage::Allocated => {
                let asked = block.requested.min(block.size);
                let words = format!("{size} held, {} asked for", Bytes::new(asked));
                self.part(y, from, asked, Part::Held, &words);
                self.part(y, from + asked, block.size - asked, Part::Waste, &words);
            }
        }
        let (x, width) = (self.place(from), self.pixels(block.size));
        self.push(format_args!(
            "<line class=\"gap\" x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{}\"/>\n",
            y + BAR_HEIGHT
        ));
        if width >= LEAST_FOR_TEXT {
            let class = match block.usage {
                Usage::Free => "label",
                Usage::Allocated | Usage::PendingFree => "in",
            };
            self.text(x + 5.0, y + 15, class, &size.to_string());
        }
    }

    fn part(&mut self, y: u32, from: u64, size: u64, part: Part, words: &str) {
        if size == 0 {
            return;
        }
        if !self.shown.contains(&part) {
            self.shown.push(part);
        }
        let (x, width, class) = (self.place(from), self.pixels(size), part.class());
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{BAR_HEIGHT}\"><title>{words}</title></rect>\n"
        ));
    }

    fn legend(&mut self, y: u32) {
        let mut x = MARGIN;
        for part in Part::ALL {
            if !self.shown.contains(&part) {
                continue;
            }
            let (class, words) = (part.class(), part.legend());
            self.push(format_args!(
                "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"11\" height=\"11\"/>\n",
                y - 10
            ));
            self.text(f64::from(x + 16), y, "note", words);
            // About the width of the words in the font above.
            x += 34 + 6 * words.len() as u32;
        }
    }

    fn text(&mut self, x: f64, y: u32, class: &str, words: &str) {
        let words = escaped(words);
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y}\">{words}</text>\n"
        ));
    }

    fn place(&self, from: u64) -> f64 {
        f64::from(LABELS) + self.pixels(from)
    }

    fn pixels(&self, bytes: u64) -> f64 {
        f64::from(BAR) * bytes as f64 / self.largest as f64
    }

    fn push(&mut self, parts: std::fmt::Arguments<'_>) {
        let written = self.svg.write_fmt(parts);
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
}

fn sort(segment: &SegmentState) -> &'static str {
    match (segment.expandable, segment.small) {
        (true, _) => " range",
        (false, true) => " small",
        (false, false) => "",
    }
}

fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for character in words.chars() {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{MOST_SEGMENTS, heap_svg};
    use crate::heap_map::{BlockState, HeapMap, SegmentState, Usage};
    use crate::ids::{Address, StreamId};

    const MIB: u64 = 1 << 20;

    fn segment(address: u64, blocks: &[(u64, u64, Usage)]) -> SegmentState {
        let mut at = address;
        let blocks: Vec<_> = (blocks.iter())
            .map(|(size, requested, usage)| {
                let block = BlockState {
                    address: Address(at),
                    size: *size,
                    requested: *requested,
                    usage: *usage,
                };
                at += size;
                block
            })
            .collect();
        SegmentState {
            address: Address(address),
            size: at - address,
            stream: StreamId::DEFAULT,
            small: false,
            expandable: false,
            private_pool: (0, 0),
            blocks,
        }
    }

    #[test]
    fn a_block_is_as_wide_as_its_share_of_the_largest_segment() {
        let map = HeapMap {
            segments: vec![
                segment(
                    0,
                    &[
                        (10 * MIB, 10 * MIB, Usage::Allocated),
                        (10 * MIB, 0, Usage::Free),
                    ],
                ),
                segment(1 << 30, &[(5 * MIB, 0, Usage::Free)]),
            ],
        };
        let picture = heap_svg(&map, "halves");
        assert!(picture.contains("class=\"held\" x=\"150.0\" y=\"36\" width=\"299.0\""));
        assert!(picture.contains("class=\"free\" x=\"449.0\" y=\"36\" width=\"299.0\""));
        assert!(picture.contains("class=\"whole\" x=\"150.0\" y=\"68\" width=\"149.5\""));
        assert!(!picture.contains("rounded up"), "nothing was: {picture}");
    }

    #[test]
    fn what_rounding_added_has_a_colour_of_its_own() {
        let map = HeapMap {
            segments: vec![segment(0, &[(4 * MIB, 3 * MIB, Usage::Allocated)])],
        };
        let picture = heap_svg(&map, "a <b> & \"c\"");
        assert!(picture.contains("class=\"held\" x=\"150.0\" y=\"36\" width=\"448.5\""));
        assert!(picture.contains("class=\"waste\" x=\"598.5\" y=\"36\" width=\"149.5\""));
        assert!(picture.contains("4.00 MiB held, 3.00 MiB asked for"));
        assert!(picture.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
    }

    #[test]
    fn segments_beyond_the_picture_are_counted() {
        let one = segment(0, &[(MIB, MIB, Usage::PendingFree)]);
        let map = HeapMap {
            segments: vec![one; MOST_SEGMENTS + 3],
        };
        let picture = heap_svg(&map, "many");
        assert!(picture.contains("and 3 more segments"));
        assert_eq!(picture.matches("class=\"edge\"").count(), MOST_SEGMENTS);
    }
}
