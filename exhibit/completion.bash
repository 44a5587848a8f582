_PROGRAM() {
  local word verb="" second="" next="" at=0 i key
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -*) ;;
      *) if [ -z "$verb" ]; then verb=${COMP_WORDS[i]} at=$i
         elif [ -z "$second" ]; then second=${COMP_WORDS[i]}; fi ;;
    esac
  done
  word=${COMP_WORDS[COMP_CWORD]}
  if [ "${COMP_WORDS[COMP_CWORD-1]}" = --set ]; then
    if [ -z "${_PROGRAM_settings:-}" ]; then
      _PROGRAM_settings=$(PROGRAM completion settings 2>/dev/null)
    fi
    next=$_PROGRAM_settings
    compopt -o nospace 2>/dev/null
  elif [ -z "$verb" ]; then next="VERBS FLAGS"
  elif [ "${word#-}" != "$word" ]; then
    if [ "$verb" != convert ]; then second=""; fi
    key=_PROGRAM_flags_${verb//[^a-z]/_}_${second//[^a-z]/_}
    eval "next=\${$key:-}"
    if [ -z "$next" ]; then
      next=$(PROGRAM completion flags "$verb" "$second" 2>/dev/null)
      eval "$key=\$next"
    fi
  elif [ "$verb" = convert ] && [ $((at + 1)) -eq "$COMP_CWORD" ]; then next="CONVERTERS"
  elif [ "$verb" = completion ]; then next="SHELLS"
  fi
  COMPREPLY=($(compgen -W "$next" -- "$word"))
}
complete -o default -F _PROGRAM PROGRAM
