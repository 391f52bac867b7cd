# shellcheck shell=bash
# Sourced by ./run and ./test, from the root of the tree: install it into a virtual environment, editable, and compile it
# where it lies. Nothing is done twice: what was installed and compiled from which text is noted in the environment.
#
# pip unpacks packages on one core while compilers use the others. The caller has say().

# make_venv VENV
make_venv() {
    [ -x "$1/bin/python" ] || "${PYTHON:-python3}" -m venv "$1" \
        || { say "this Python cannot make virtual environments: sudo apt-get install python3-venv"; exit 1; }
}

# What the installation was made from: equal text, and there is nothing to install. The compiled modules lie in the tree,
# which other environments share, so they count with their times; without a compiler nothing was compiled.
declared() { printf '%s %s\n' "$PWD" "$("$venv/bin/python" -VV)"; cat pyproject.toml; }
compiled() {
    command -v cc gcc || true
    find commitlog router rumq bench tests/fuzz -name '*.so' -printf '%p %T@\n' | sort
    # Kernels, and the modules that setup.py lists.
    { find commitlog router rumq bench tests/fuzz \( -path '*/kernels/*.py' -o -name '*.pxd' \) -print0 | sort -z
      grep -oE '"(commitlog|router|rumq)/[a-z_/]+\.py"' setup.py | tr -d '"' | tr '\n' '\0'; } | xargs -0 cat setup.py
}
stamp() { "$@" | sha256sum; }
# is_stamped NAME COMMAND: whether the output of the command is that of the time when NAME was noted
is_stamped() { [ "$(stamp "$2")" = "$(cat "$venv/rumq-$1" 2>/dev/null)" ]; }

# install_tree VENV EXTRA,EXTRA.. WISH: WISH is setup.py's RUMQ_COMPILE, `1` or `product`
install_tree() {
    local venv=$1 extras=$2 wish=${RUMQ_COMPILE:-$3} extra compiler='' missing=''
    make_venv "$venv"
    for extra in ${extras//,/ }; do
        is_stamped "declared-$extra" declared || missing=$missing,$extra
    done
    if [ -n "$missing" ]; then
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "cython>=3.1" "setuptools>=77"
    fi
    if [ "$wish" != 0 ] && ! is_stamped compiled-1 compiled && ! is_stamped "compiled-$wish" compiled; then
        say "compiling what has changed (everything takes three to four minutes of CPU time, on all cores)"
        RUMQ_COMPILE=$wish "$venv/bin/python" setup.py --quiet build_ext --inplace &
        compiler=$!
        trap 'kill "$compiler" 2>/dev/null' EXIT
    fi
    if [ -n "$missing" ]; then
        say "installing rumq[$extras] into $venv"
        # Bytecode is made of what is imported, when it is: most of these packages are not.
        RUMQ_COMPILE=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
            --editable ".[$extras]"
        for extra in ${extras//,/ }; do
            stamp declared >"$venv/rumq-declared-$extra"
        done
    fi
    if [ -n "$compiler" ]; then
        wait "$compiler"
        trap - EXIT
        stamp compiled >"$venv/rumq-compiled-$wish"
    fi
}
