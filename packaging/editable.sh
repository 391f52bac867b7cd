# shellcheck shell=bash
# Sourced by ./run and ./test, from the root of the tree: install it into a virtual environment, editable, and compile it
# where it lies. Nothing is done twice: what was installed and compiled from which text is noted in the environment.
#
# pip unpacks packages on one core while compilers use the others. The caller has say().

# Some images forbid bytecode. Without it each process compiles several hundred modules anew, half of a broker's start.
unset PYTHONDONTWRITEBYTECODE

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
    # Kernels, and the modules with a mark.
    { find commitlog router rumq bench tests/fuzz \( -path '*/kernels/*.py' -o -name '*.pxd' \) -print0
      grep -rlZE --include='*.py' '^# compiled: (hot|warm)$' commitlog router rumq || true; } | sort -z | xargs -0 cat setup.py
}
stamp() { "$@" | sha256sum; }
# is_stamped NAME COMMAND: whether the output of the command is that of the time when NAME was noted
is_stamped() { [ "$(stamp "$2")" = "$(cat "$venv/rumq-$1" 2>/dev/null)" ]; }

# What builds them is there already (no isolation), and bytecode is made of what is imported, when it is: most is not.
install_packages() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-build-isolation "$@"
}

# Half a gigabyte of archives that comes as a source: to compress them again takes pip longer than all else that it does.
install_pyspark() {
    local wanted
    wanted=$(sed -nE 's/^spark = \["(pyspark[^"]*)".*/\1/p' pyproject.toml)
    install_packages --use-pep517 --no-deps --config-settings=--build-option=--compression=stored "${wanted:-pyspark}"
}

# install_tree VENV EXTRA,EXTRA.. WISH: WISH is setup.py's RUMQ_COMPILE, `1` or `product`
install_tree() {
    local venv=$1 extras=$2 wish=${RUMQ_COMPILE:-$3} extra compiler='' missing=''
    make_venv "$venv"
    for extra in ${extras//,/ }; do
        is_stamped "declared-$extra" declared || missing=$missing,$extra
    done
    if [ -n "$missing" ]; then
        install_packages "cython>=3.1" "setuptools>=77"
    fi
    if [ "$wish" != 0 ] && ! is_stamped compiled-1 compiled && ! is_stamped "compiled-$wish" compiled; then
        say "compiling what has changed (everything takes two to three minutes of CPU time, on all cores)"
        RUMQ_COMPILE=$wish "$venv/bin/python" setup.py --quiet build_ext --inplace &
        compiler=$!
        trap 'kill "$compiler" 2>/dev/null' EXIT
    fi
    if [ -n "$missing" ]; then
        say "installing rumq[$extras] into $venv"
        case ,$missing, in *,spark,*) install_pyspark ;; esac
        RUMQ_COMPILE=0 install_packages --editable ".[$extras]"
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
