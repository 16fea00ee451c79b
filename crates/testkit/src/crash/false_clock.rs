use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the Debian package libfaketime installs it.
const FOLDERS: [&str; 3] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];

/// The wall clock of a process, which can be changed from outside while the process runs.
pub struct FalseClock {
    library: String,
    file: PathBuf,
}

impl FalseClock {
    /// A correct clock; its offset is kept in this file.
    pub fn new(file: PathBuf) -> FalseClock {
        let library = FOLDERS
            .iter()
            .map(|folder| format!("{folder}/faketime/libfaketime.so.1"))
            .find(|path| Path::new(path).exists());
        let library = library.unwrap_or_else(|| {
            panic!("libfaketime is missing; scripts/setup --test installs it (apt: libfaketime)")
        });
        let clock = FalseClock { library, file };
        clock.write("+0");
        clock
    }

    /// Sets it ahead of the real time.
    pub fn set_ahead(&self, by: Duration) {
        self.write(&format!("+{}", by.as_secs()));
    }

    /// Sets it behind the real time.
    pub fn set_back(&self, by: Duration) {
        self.write(&format!("-{}", by.as_secs()));
    }

    /// The environment variables that make a process use it.
    pub fn variables(&self) -> [(&str, &str); 4] {
        let file = self.file.to_str().unwrap_or_default();
        [
            ("LD_PRELOAD", self.library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", file),
            ("FAKETIME_NO_CACHE", "1"),
            // The monotonic clock cannot be set in reality, so it is not changed here.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
    }

    /// In one step, so that no process reads an incomplete file.
    fn write(&self, offset: &str) {
        let beside = self.file.with_extension("new");
        let written = std::fs::write(&beside, format!("{offset}\n"))
            .and_then(|()| std::fs::rename(&beside, &self.file));
        written.unwrap_or_else(|error| panic!("{}: {error}", self.file.display()));
    }
}
