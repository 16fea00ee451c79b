//! The terminal, while the demo has it: it is given back on every way out.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, terminal};

use super::frame::{Line, Tint};

/// A screen of our own on standard error; standard output is for the summary.
pub(super) struct Screen(());

impl Screen {
    /// Whether there is a terminal that can do it, and somebody in front of it.
    pub(super) fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        io::stderr().is_terminal() && io::stdin().is_terminal() && !is_dumb
    }

    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Screen> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Else its words would vanish with the screen.
            give_back();
            before(panic);
        }));
        terminal::enable_raw_mode()?;
        let screen = Screen(());
        execute!(io::stderr(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Columns and lines. A terminal that does not know is taken for an ordinary one.
    pub(super) fn size() -> (usize, usize) {
        let known = terminal::size().ok().filter(|(columns, lines)| *columns > 0 && *lines > 0);
        let (columns, lines) = known.unwrap_or((80, 24));
        (usize::from(columns), usize::from(lines))
    }

    /// Shows these lines and nothing else.
    pub(super) fn draw(lines: &[Line]) -> io::Result<()> {
        // In one piece, and written over the last one: nothing flickers.
        let mut text = String::from("\x1b[H");
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            for (tint, piece) in line {
                // Text takes whatever is written to it.
                write!(text, "{}{piece}\x1b[0m", code(*tint)).unwrap_or_default();
            }
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        let mut terminal = io::stderr().lock();
        terminal.write_all(text.as_bytes())?;
        terminal.flush()
    }

    /// How often somebody has pressed a key to stop since the last look.
    pub(super) fn times_told_to_stop() -> usize {
        let mut told = 0;
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(Event::Key(key)) = event::read() else { continue };
            let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL)
                && matches!(key.code, KeyCode::Char('c'));
            let is_quit = matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc);
            told += usize::from(key.kind == KeyEventKind::Press && (is_interrupt || is_quit));
        }
        told
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back as it was. It may be called at any moment, and more than once.
pub(super) fn give_back() {
    // There is nobody left to tell when the terminal is gone.
    execute!(io::stderr(), cursor::Show, terminal::LeaveAlternateScreen).unwrap_or_default();
    terminal::disable_raw_mode().unwrap_or_default();
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
