//! The fenced blocks of a page: what a reader would type, and what it is said to print.

/// A block of commands, with what they are said to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// Where it stands, for whoever mends it.
    pub(crate) line: usize,
    /// What a reader would type.
    pub(crate) commands: String,
    /// How it is to be run.
    pub(crate) manner: Manner,
    /// What stands in the `text` block after it: standard output.
    pub(crate) output: Option<String>,
    /// What stands in the `log` block after it: standard error.
    pub(crate) log: Option<String>,
}

/// How a block is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// `sh`, or `sh exit N`: to its end, which is this code of its last command.
    ToItsEnd { code: i32 },
    /// `sh soon`: again and again until it prints what it is said to, as a reader would who looks
    /// whether something has come.
    Soon,
    /// `sh stays`: beside the blocks after it; it has begun when it printed what it is said to.
    Stays,
    /// `sh no-run REASON`: not at all.
    NotAtAll { reason: String },
}

impl Default for Manner {
    fn default() -> Manner {
        Manner::ToItsEnd { code: 0 }
    }
}

/// All blocks of commands of a page, in order. A `text` or `log` block belongs to the block of
/// commands before it, unless another fence stands in between.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut belongs = false;
    for fence in fences(page) {
        let (language, rest) = fence.info.split_once(' ').unwrap_or((&fence.info, ""));
        match (language, blocks.last_mut()) {
            ("sh", _) => {
                let line = fence.line;
                let commands = fence.content;
                blocks.push(Block { line, commands, manner: manner(rest), ..Block::default() });
                belongs = true;
            }
            ("text", Some(block)) if belongs => block.output = Some(fence.content),
            ("log", Some(block)) if belongs => block.log = Some(fence.content),
            ("console" | "bash" | "shell", _) => {
                panic!("line {}: commands stand in `sh` blocks, so that they are run", fence.line)
            }
            _ => belongs = false,
        }
    }
    blocks
}

fn manner(rest: &str) -> Manner {
    match rest.split_once(' ').unwrap_or((rest, "")) {
        ("", "") => Manner::default(),
        ("exit", code) => Manner::ToItsEnd { code: code.parse().expect("a number after `exit`") },
        ("soon", "") => Manner::Soon,
        ("stays", "") => Manner::Stays,
        ("no-run", reason) if !reason.is_empty() => {
            Manner::NotAtAll { reason: reason.trim_start_matches("— ").to_owned() }
        }
        _ => panic!(
            "`sh {rest}` is none of `sh`, `sh exit N`, `sh soon`, `sh stays` and `sh no-run — WHY`"
        ),
    }
}

struct Fence {
    line: usize,
    info: String,
    content: String,
}

fn fences(page: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let mut open: Option<Fence> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let info = info.trim().to_owned();
                open = Some(Fence { line: at + 1, info, content: String::new() });
            }
            (Some(_), Some(_)) => fences.extend(open.take()),
            (Some(fence), None) => {
                fence.content.push_str(line);
                fence.content.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    fences
}

#[test]
fn blocks_come_with_what_they_print() {
    let page = "\
        ```sh\na\nb\n```\nprints\n```text\nx …\n```\n```log\ny\n```\n\
        ```sh exit 4\nc\n```\n```json\n{}\n```\n```text\nnot of c\n```\n\
        ```sh stays\nd\n```\n```sh no-run — it installs things\ne\n```\n";
    let block = |line, commands: &str, manner, output: Option<&str>, log: Option<&str>| Block {
        line,
        commands: commands.to_owned(),
        manner,
        output: output.map(str::to_owned),
        log: log.map(str::to_owned),
    };
    let reason = "it installs things".to_owned();
    let expected = [
        block(1, "a\nb\n", Manner::default(), Some("x …\n"), Some("y\n")),
        block(12, "c\n", Manner::ToItsEnd { code: 4 }, None, None),
        block(21, "d\n", Manner::Stays, None, None),
        block(24, "e\n", Manner::NotAtAll { reason }, None, None),
    ];
    assert_eq!(blocks(page), expected);
}
