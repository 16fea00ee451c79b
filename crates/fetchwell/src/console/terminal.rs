//! The terminal: full-screen output for live views, restored on every exit.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, terminal};

pub(crate) use fetchwell_policy::text::printable;

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tint {
    Plain,
    Dim,
    Bold,
    Good,
    Warning,
    Bad,
}

/// A line of the screen, as styled pieces.
pub(crate) type ScreenLine = Vec<(Tint, String)>;

/// A line in bold.
pub(crate) fn bold(text: &str) -> ScreenLine {
    vec![(Tint::Bold, text.to_owned())]
}

/// Fits lines above a footer into a screen: exactly `height` lines, none longer than `width`.
pub(crate) fn fit(
    mut lines: Vec<ScreenLine>,
    foot: ScreenLine,
    width: usize,
    height: usize,
) -> Vec<ScreenLine> {
    lines.resize_with(height.saturating_sub(1), ScreenLine::new);
    lines.push(foot);
    lines.truncate(height);
    lines.into_iter().map(|line| cut(line, width)).collect()
}

/// Truncates a line to `width`. Every character counts as one column.
fn cut(line: ScreenLine, width: usize) -> ScreenLine {
    let mut left = width;
    let mut pieces = ScreenLine::new();
    for (tint, text) in line {
        let text: String = text.chars().take(left).collect();
        left -= text.chars().count();
        pieces.push((tint, text));
    }
    pieces
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Any printable character.
    Char(char),
    Enter,
    Backspace,
    Escape,
    /// Ctrl-C.
    Interrupt,
}

/// Whether someone is at a terminal, to read what is printed and to type.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal() && io::stdin().is_terminal()
}

/// A full screen on standard error; standard output is for data.
pub(crate) struct Screen(());

impl Screen {
    /// Whether there is a capable terminal with someone at it.
    pub(crate) fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        is_watched() && !is_dumb
    }

    /// Switches to the alternate screen and raw mode.
    pub(crate) fn open() -> io::Result<Screen> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Otherwise the panic message would vanish with the screen.
            give_back();
            before(panic);
        }));
        terminal::enable_raw_mode()?;
        let screen = Screen(());
        execute!(io::stderr(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Draws the lines of a frame of this width and height, replacing everything on the screen. The size is 80 by 24 if
    /// the terminal does not report it.
    pub(crate) fn draw(frame: impl FnOnce(usize, usize) -> Vec<ScreenLine>) -> io::Result<()> {
        let known = terminal::size().ok().filter(|(columns, lines)| *columns > 0 && *lines > 0);
        let (width, height) = known.unwrap_or((80, 24));
        // In one write, over the previous frame, to avoid flicker.
        let mut text = String::from("\x1b[H");
        for (at, line) in frame(width.into(), height.into()).iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            for (tint, piece) in line {
                // Writing to a string cannot fail.
                write!(text, "{}{piece}\x1b[0m", code(*tint)).unwrap_or_default();
            }
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        let mut terminal = io::stderr().lock();
        terminal.write_all(text.as_bytes())?;
        terminal.flush()
    }

    /// The keys pressed since the last call, in order.
    pub(crate) fn keys() -> Vec<Key> {
        let mut keys = Vec::new();
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(Event::Key(key)) = event::read() else { continue };
            if key.kind == KeyEventKind::Press {
                keys.extend(key_of(key));
            }
        }
        keys
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal. It may be called at any time, and more than once.
pub(crate) fn give_back() {
    // Errors are ignored: the terminal may be gone.
    execute!(io::stderr(), cursor::Show, terminal::LeaveAlternateScreen).unwrap_or_default();
    terminal::disable_raw_mode().unwrap_or_default();
}

fn key_of(key: KeyEvent) -> Option<Key> {
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    })
}

fn code(tint: Tint) -> &'static str {
    match tint {
        Tint::Plain => "",
        Tint::Dim => "\x1b[2m",
        Tint::Bold => "\x1b[1m",
        Tint::Good => "\x1b[32m",
        Tint::Warning => "\x1b[33m",
        Tint::Bad => "\x1b[31m",
    }
}
