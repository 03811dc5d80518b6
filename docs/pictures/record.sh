#!/bin/sh
# Records the terminal pictures of the docs: start.svg, attach.svg and top.svg.
# Usage: docs/pictures/record.sh DIR, where DIR has `lanyard` and `lanyard-shim`. Needs tmux, git and node.
# Everything happens in a new home with a tmux server, a daemon and agents of its own, which end with the script.
set -eu

programs=$(cd "$1" && pwd)
pictures=$(cd "$(dirname "$0")" && pwd)
# A short path that reads well in a picture.
home=/tmp/you
mkdir "$home"
export HOME="$home" LANG=C.UTF-8 PATH="$home/bin:$programs:/usr/bin:/bin"
unset TMUX LANYARD_DATA_DIR LANYARD_CONFIG XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
# The first session keeps the server while others come and go.
screen() { tmux -L "ly$$" -f /dev/null "$@"; }
finish() {
    screen kill-server 2>/dev/null || true
    # Agents outlive the daemon, so each session is stopped first.
    for session in $(lanyard ls --full-ids 2> /dev/null | awk 'NR > 1 { print $1 }'); do
        lanyard stop -q --now "$session" > /dev/null 2>&1 || true
    done
    lanyard down -q > /dev/null 2>&1 || true
    rm -rf "$home"
}
trap finish EXIT

# until_shows TEXT: waits until the terminal shows a text.
until_shows() {
    tries=0
    until screen capture-pane -t shown -p | grep -qF -- "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { screen capture-pane -t shown -p; echo "no '$1' on the screen" >&2; exit 1; }
        sleep 0.1
    done
}
# draw NAME COLUMNS TITLE: writes what the terminal shows.
draw() { screen capture-pane -t shown -e -p | node "$pictures/terminal-svg.mjs" "$2" "$3" > "$pictures/$1.svg"; }
# open COLUMNS ROWS: a new terminal, with a name of its own.
open() {
    screen kill-session -t shown 2>/dev/null || true
    screen new-session -d -s shown -x "$1" -y "$2" "cd ~/shop && PS1='$ ' exec sh"
    until_shows '$'
}

screen new-session -d -s keep sh
mkdir -p "$home/bin" "$home/shop/src" "$home/.codex"
cd "$home/shop"
printf '# Shop\n' > README.md
printf 'fn login(tries: u32) -> bool {\n    tries < 3\n}\n' > src/login.rs
git init -q -b main . && git add . && git -c user.name=a -c user.email=a@b commit -qm 'a shop'
printf '#!/bin/sh\necho "codex-cli 0.166.0"\n' > "$home/bin/codex"
printf '#!/bin/sh\necho "2.1.197 (Claude Code)"\n' > "$home/bin/claude"
chmod +x "$home/bin/codex" "$home/bin/claude"
printf '{"tokens": {"access_token": "x"}}' > "$home/.codex/auth.json"

open 120 24
screen send-keys -t shown lanyard Enter
until_shows 'Default agent'
screen send-keys -t shown Enter
until_shows 'hooks for claude'
screen send-keys -t shown Enter
until_shows 'hooks for codex'
screen send-keys -t shown Enter
until_shows 'Write the config'
screen send-keys -t shown Enter
until_shows 'Start the daemon'
screen send-keys -t shown Enter
until_shows 'lanyard --help'
draw start 120 'lanyard'
lanyard down -q

# Scripted agents play the parts of real ones: each message takes the next script of its agent.
mkdir -p "$home/scripts/codex" "$home/scripts/claude"
cat > "$home/.config/lanyard/config.toml" <<CONFIG
[daemon]
listen = "127.0.0.1:0"
[agents.codex]
driver = "acp"
command = ["$programs/lanyard", "scripted-agent", "--scripts", "$home/scripts/codex"]
[agents.claude]
driver = "acp"
command = ["$programs/lanyard", "scripted-agent", "--scripts", "$home/scripts/claude"]
CONFIG
cat > "$home/scripts/codex/1" <<'SCRIPT'
/think First the test, then the code it tests.
/say I will run the test first, and then look at the code it tests.
/run printf "running 2 tests\ntest login_three ... FAILED\ntest login_once ... ok\n"
/edit src/login.rs fn login(tries: u32) -> bool {\n    tries <= 3\n}\n
/say The comparison was off by one.
/ask Run cargo test login
SCRIPT
echo '/say The page about the login is written.' > "$home/scripts/claude/1"
cat > "$home/scripts/claude/2" <<'SCRIPT'
/spawn scribe Write the notes ; /wait-file never
/tool search {"query": "breaking"}
/wait-file never
SCRIPT
lanyard run -q --agent claude 'Describe the login' > /dev/null
lanyard run -q --detach --agent claude 'Prepare the release' > /dev/null
lanyard run -q --detach --agent codex 'Fix the failing login test' > "$home/login"
until lanyard approvals -q | grep -q cargo; do sleep 0.1; done

open 100 28
screen send-keys -t shown "lanyard attach $(cat "$home/login")" Enter
until_shows '1 Allow once'
screen send-keys -t shown M-t
until_shows 'login_once'
draw attach 100 'lanyard attach login'

open 120 12
screen send-keys -t shown 'lanyard top' Enter
until_shows 'approvals 1'
until_shows 'search'
draw top 120 'lanyard top'
