//! Tables of places: what is secret, what the system is, and where each agent keeps its state. Names only.

/// In the home folder, whether they are files or folders. Keys, tokens, browsers, histories.
pub(super) const SECRETS: [&str; 66] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".fly",
    ".heroku",
    ".terraform.d",
    ".password-store",
    ".vault-token",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/doctl",
    ".config/rclone",
    ".config/op",
    ".config/sops",
    ".config/containers",
    ".config/git/credentials",
    ".config/systemd",
    ".config/autostart",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".mozilla",
    ".thunderbird",
    ".local/share/keyrings",
    ".Xauthority",
    ".ICEauthority",
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".lesshst",
    ".viminfo",
    // Lanyard's own, also where this daemon uses other folders.
    ".local/share/lanyard",
    ".config/lanyard",
    // What agents keep: those of one are no other's affair.
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/opencode",
    ".local/share/opencode",
    ".local/state/opencode",
];

/// Outside of the home folder.
pub(super) const SYSTEM_SECRETS: [&str; 8] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/var/lib/docker",
];

/// Folders that everybody shares: there lie sockets of the user's desktop, buses and agents.
pub(super) const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// What `strict` shows.
pub(super) const SYSTEM: [&str; 34] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
];

/// Variables that lead to sockets of the user, which a sandbox does not show.
pub(super) const UNSET: [&str; 12] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GNOME_KEYRING_CONTROL",
    "GPG_AGENT_INFO",
    "PULSE_SERVER",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Where agents keep their state.
#[derive(Debug)]
pub(super) struct AgentPlaces {
    /// Names of programs.
    pub(super) programs: &'static [&'static str],
    pub(super) folders: &'static [StatePlace],
    /// Files in the home folder that it writes, where they exist.
    pub(super) files: &'static [&'static str],
}

/// One folder of an agent.
#[derive(Debug)]
pub(super) struct StatePlace {
    /// The variable that names it or the folder it is in, and the rest of its path then.
    pub(super) variable: Option<(&'static str, &'static str)>,
    /// Below the home folder otherwise.
    pub(super) folder: &'static str,
    pub(super) writes: bool,
    /// Files in it that name programs which the agent runs, also outside of the sandbox.
    pub(super) guard: &'static [&'static str],
}

const fn writes(folder: &'static str) -> StatePlace {
    StatePlace { variable: None, folder, writes: true, guard: &[] }
}

pub(super) const AGENTS: [AgentPlaces; 4] = [
    AgentPlaces {
        programs: &["claude", "claude-agent-acp"],
        folders: &[
            StatePlace {
                variable: Some(("CLAUDE_CONFIG_DIR", "")),
                folder: ".claude",
                writes: true,
                guard: &["settings.json", "settings.local.json", "hooks", "plugins"],
            },
            writes(".cache/claude-cli-nodejs"),
            writes(".local/state/claude"),
        ],
        files: &[".claude.json"],
    },
    AgentPlaces {
        programs: &["codex", "codex-acp"],
        folders: &[StatePlace {
            variable: Some(("CODEX_HOME", "")),
            folder: ".codex",
            writes: true,
            guard: &["config.toml", "hooks.json"],
        }],
        files: &[],
    },
    AgentPlaces {
        programs: &["opencode"],
        folders: &[
            StatePlace {
                variable: Some(("XDG_CONFIG_HOME", "opencode")),
                folder: ".config/opencode",
                // It installs packages there when it is started for the first time.
                writes: true,
                guard: &[
                    "opencode.json",
                    "opencode.jsonc",
                    "package.json",
                    "node_modules",
                    "plugin",
                    "plugins",
                ],
            },
            StatePlace {
                variable: Some(("XDG_DATA_HOME", "opencode")),
                folder: ".local/share/opencode",
                writes: true,
                guard: &[],
            },
            StatePlace {
                variable: Some(("XDG_STATE_HOME", "opencode")),
                folder: ".local/state/opencode",
                writes: true,
                guard: &[],
            },
            StatePlace {
                variable: Some(("XDG_CACHE_HOME", "opencode")),
                folder: ".cache/opencode",
                writes: true,
                guard: &[],
            },
        ],
        files: &[],
    },
    AgentPlaces {
        programs: &["gemini"],
        folders: &[StatePlace {
            variable: None,
            folder: ".gemini",
            writes: true,
            guard: &["settings.json", "extensions"],
        }],
        files: &[],
    },
];
