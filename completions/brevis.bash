# brevis.bash: completion of brevis and brevis-synth in bash; needs nothing but bash. SPDX-License-Identifier: Apache-2.0
#
# Lists of options and commands are compared with those of the commands by tests/completion.py.

_brevis_commands='unpack test list show cat bench mount cpu'
_brevis_options='-o --output -c --stdout -f --force -T --threads -M --memory --numa --drop-cache --metrics --repeat --keep-going --foreground -q --quiet -v --verbose --json
--no-progress -V --version -h --help'
_brevis_valued='-o --output -T --threads -M --memory --numa --metrics --repeat'
_brevis_synth_options='-o --output -f --force --favor --target --budget --max-nodes --max-depth --prior --save-prior --learn-only --no-prior --no-classes --shard --explain
-T --threads -M --memory -q --quiet -v --verbose --json --no-progress -V --version -h --help'
_brevis_synth_valued='-o --output --favor --target --budget --max-nodes --max-depth --prior --save-prior --shard --explain
-T --threads -M --memory'

# Words of our own that begin with the word at the cursor. Never for foreign text: compgen -W expands it.
_brevis_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Directories, and files whose names match the pattern.
_brevis_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <({ compgen -d -- "$cur"; compgen -f -X "!$1" -- "$cur"; } | sort -u)
}

# What was typed as the name of a file: without quotes and with the home directory.
_brevis_path()
{
	local path=$1
	path=${path//[\"\'\\]/}
	[[ $path == '~/'* ]] && path=$HOME/${path:2}
	printf '%s' "$path"
}

# The tensors of an archive, or of a directory of them, if they are quick to get. An archive may come from anybody, so only names that mean
# nothing to a shell are offered.
_brevis_tensors()
{
	local archive name begin=${cur#[\"\']}
	archive=$(_brevis_path "$1")
	[[ -f $archive || -d $archive ]] || return
	while IFS= read -r name; do
		[[ $name == "$begin"* ]] && COMPREPLY+=("$name")
	done < <(timeout 3 "${COMP_WORDS[0]}" list --json -T 1 -- "$archive" 2>/dev/null </dev/null |
		sed -n 's/^{"name": "\([A-Za-z0-9_][A-Za-z0-9_.\/-]*\)", "dtype": .*/\1/p')
}

# Looks at the words before the cursor: `args` becomes those that are neither options nor their values, `option` the option whose value the
# cursor is at. bash cuts --favor=size into three words.
_brevis_parse()
{
	local i word valued=" ${1//$'\n'/ } "
	cur=${COMP_WORDS[COMP_CWORD]}
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word == -- && -z $ended ]]; then
			ended=1
		elif [[ $word == -?* && -z $ended ]]; then
			[[ ${COMP_WORDS[i + 1]} == = ]] && ((i + 1 <= COMP_CWORD)) && ((i++))
			if [[ $valued == *" $word "* || ${COMP_WORDS[i]} == = ]]; then
				((++i >= COMP_CWORD)) && option=$word
			fi
		else
			args+=("$word")
		fi
	done
	[[ $cur == = && -n $option ]] && cur=
}

# Values that both commands know.
_brevis_value()
{
	case $option in
	-T | --threads) _brevis_words "1 2 4 8 16 32 64" ;;
	-M | --memory) _brevis_words "256M 512M 1G 2G 4G 8G 16G" ;;
	*) return 1 ;;
	esac
}

_brevis()
{
	local cur option='' ended='' args=()
	COMPREPLY=()
	_brevis_parse "$_brevis_valued"
	if [[ -n $option ]]; then
		_brevis_value && return
		case $option in
		-o | --output | --metrics) _brevis_files '*' ;;
		--numa) _brevis_words "none local interleave" ;;
		--repeat) _brevis_words "1 3 5 9" ;;
		esac
	elif [[ $cur == -* && -z $ended ]]; then
		_brevis_words "$_brevis_options"
	elif ((${#args[@]} == 0)); then
		_brevis_words "$_brevis_commands"
	else
		case ${args[0]}:${#args[@]} in
		test:* | unpack:1 | list:1 | show:1 | cat:1 | bench:1 | mount:1) _brevis_files '*.brv' ;;
		mount:2)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
			;;
		show:2) _brevis_tensors "${args[1]}" ;;
		cat:2)
			compopt -o nospace 2>/dev/null # rows may follow
			_brevis_tensors "${args[1]}"
			;;
		esac
	fi
}

_brevis_synth()
{
	local cur option='' ended='' args=()
	COMPREPLY=()
	_brevis_parse "$_brevis_synth_valued"
	if [[ -n $option ]]; then
		_brevis_value && return
		case $option in
		--favor) _brevis_words "size balanced speed" ;;
		--target) _brevis_words "avx512 avx2 neon" ;;
		-o | --output) _brevis_files '*.brv' ;;
		--prior | --save-prior) _brevis_files '*.json' ;;
		esac
	elif [[ $cur == -* && -z $ended ]]; then
		_brevis_words "$_brevis_synth_options"
	elif ((${#args[@]} == 0)); then
		_brevis_files '*.safetensors'
	fi
}

complete -F _brevis brevis
complete -F _brevis_synth brevis-synth
