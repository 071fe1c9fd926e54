import type { Command } from "commander";

export type Shell = "bash" | "zsh" | "fish";

/** A command as a shell completes it. */
interface CompletedCommand {
  /** The words that lead to it: "" for the program itself, then " models", " models load". */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly (Word & { readonly takesValue: boolean })[];
}

interface Word {
  readonly name: string;
  readonly description: string;
}

/** The script that completes the commands and options of a program in a shell, and files elsewhere. */
export function completionScript(program: Command, shell: Shell): string {
  const root = program.name();
  const all = completedCommands(program, "");
  // Without a command, it serves.
  const serve = all.find(({ path }) => path === " serve");
  const [top, ...rest] = all;
  const commands = top && serve ? [{ ...top, options: [...serve.options, ...top.options] }, ...rest] : all;
  return { bash, zsh, fish }[shell](root, commands);
}

function completedCommands(command: Command, path: string): CompletedCommand[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command).map(({ long, short, description, required, optional }) => ({
    name: long ?? short ?? "",
    description: oneLine(description),
    takesValue: required || optional,
  }));
  const words = commands.map((one) => ({ name: one.name(), description: oneLine(one.description()) }));
  return [
    { path, commands: words, options },
    ...commands
      .filter((one) => command.commands.includes(one))
      .flatMap((one) => completedCommands(one, `${path} ${one.name()}`)),
  ];
}

function oneLine(text: string): string {
  const [first = ""] = text.split(/\n|; /);
  return first.length > 80 ? `${first.slice(0, 79)}…` : first;
}

/** A text in single quotes, as all three shells read it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", shellQuote)}'`;
}

const shellQuote = `'\\''`;

/** The branches that follow the words of the line into the commands. */
function pathPattern(commands: readonly CompletedCommand[]): string {
  return commands
    .slice(1)
    .map(({ path }) => `"${path}"`)
    .join("|");
}

function bash(root: string, commands: readonly CompletedCommand[]): string {
  const names = (words: readonly Word[]): string => words.map(({ name }) => name).join(" ");
  return `# ${root} completion bash: add to ~/.bashrc:  eval "$(${root} completion bash)"
_${root}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" commands="" options="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${pathPattern(commands)}) path="$path $word" ;;
    esac
  done
  case "$path" in
${commands.map((one) => `    "${one.path}") commands="${names(one.commands)}" options="${names(one.options)}" ;;`).join("\n")}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$commands" -- "$current")) ;;
  esac
}
complete -o default -F _${root} ${root}
`;
}

function zsh(root: string, commands: readonly CompletedCommand[]): string {
  const described = (words: readonly Word[]): string =>
    words.map(({ name, description }) => quoted(`${name.replaceAll(":", "\\:")}:${description}`)).join(" ");
  return `#compdef ${root}
# ${root} completion zsh: add to ~/.zshrc, after compinit:  eval "$(${root} completion zsh)"
_${root}() {
  local current_path="" word
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$current_path $word" in
      ${pathPattern(commands)}) current_path="$current_path $word" ;;
    esac
  done
  case "$current_path" in
${commands.map((one) => `    "${one.path}") commands=(${described(one.commands)}) options=(${described(one.options)}) ;;`).join("\n")}
  esac
  if [[ "$PREFIX" == -* ]]; then
    _describe -o option options
  else
    (( $#commands )) && _describe command commands
    _files
  fi
}
compdef _${root} ${root}
`;
}

function fish(root: string, commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ path, commands: words, options }) => {
    const condition = quoted(`test (__${root}_path) = ${JSON.stringify(path)}`);
    return [
      ...words.map(
        ({ name, description }) => `complete -c ${root} -n ${condition} -a ${quoted(name)} -d ${fishText(description)}`,
      ),
      ...options.map(({ name, description, takesValue }) => {
        const flag = name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
        return `complete -c ${root} -n ${condition} ${flag}${takesValue ? " -r" : ""} -d ${fishText(description)}`;
      }),
    ];
  });
  return `# ${root} completion fish:  ${root} completion fish > ~/.config/fish/completions/${root}.fish
function __${root}_path
  set -l path ""
  for word in (commandline -opc)[2..]
    switch "$path $word"
      case ${commands
        .slice(1)
        .map(({ path }) => `"${path}"`)
        .join(" ")}
        set path "$path $word"
    end
  end
  echo "$path"
end
${lines.join("\n")}
`;
}

function fishText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
