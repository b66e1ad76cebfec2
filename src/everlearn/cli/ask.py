"""`everlearn ask`: make a set of multiple-choice questions, and let a player answer them."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.jobs import StoppedError
from everlearn.cli.messages import print_message
from everlearn.cli.progress import progress_display

if TYPE_CHECKING:
    from everlearn.cli.players import Player, PlayerOptions
    from everlearn.questions import QuestionSet, Record

PLAYERS_FOLDER = "players"
_PARTS = 10  # lines where there is no terminal
_of_model = partial(typer.Option, rich_help_panel="A model (the player endpoint)")

PlayerName = Annotated[
    str, typer.Argument(help="random, pixels, search, learner or endpoint.", show_default=False)
]
Name = Annotated[
    str | None,
    typer.Option(help="Keep the answers in FOLDER/players/NAME.", show_default="the player's"),
]
RunFolder = Annotated[Path | None, typer.Option(help="Folder of a run, for the player learner.")]
Device = Annotated[str, typer.Option(help="Where a learner looks: auto, cpu, cuda ...")]
BaseUrl = Annotated[
    str | None, _of_model(help="What comes before /chat/completions: http://host:8000/v1")
]
Model = Annotated[str | None, _of_model(help="A name that the server knows.")]
KeyEnv = Annotated[str, _of_model(help="Environment variable with the key.")]
MaxTokens = Annotated[int, _of_model(help="A reply has no more.", min=1)]
Also = Annotated[
    str,
    _of_model(help='More fields of a request, such as {"temperature": 1}; null leaves one out.'),
]
Timeout = Annotated[float, _of_model(help="Seconds without a word from it.")]
Retries = Annotated[int, _of_model(help="Tries of a question after the first.")]
Wait = Annotated[float, _of_model(help="Seconds before the second try; then twice as long.")]
Parallel = Annotated[int, _of_model(help="Questions under way at once.")]
PriceIn = Annotated[float | None, _of_model(help="Price of a million tokens read.", min=0)]
PriceOut = Annotated[float | None, _of_model(help="Price of a million tokens written.", min=0)]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def ask(context: typer.Context) -> None:
    """Ask multiple-choice questions: which picture shows the shape of a query?"""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def make(
    folder: Annotated[Path, typer.Argument(help="Where to write.", show_default=False)],
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 0,
    sizes: Annotated[
        str, typer.Option(help="How many choices, with commas between.")
    ] = "2,3,4,5,6,7,8,9,10",
    each: Annotated[int, typer.Option(help="How many questions of each.")] = 100,
    size: Annotated[int, typer.Option(help="Side of a picture in pixels; the paper: 256.")] = 64,
    channels: Annotated[int, typer.Option(help="1 (grey) or 3 (red, green, blue).")] = 1,
) -> None:
    """Write questions: pictures, prompts and answers. Run again, it goes on where it stopped."""
    from everlearn.cli.values import parse_value
    from everlearn.questions import QuestionSet, write_questions
    from everlearn.render import Canvas

    chosen = parse_value(sizes, tuple[int, ...], "--sizes")
    wanted = QuestionSet(seed, chosen, each, Canvas(size=size, channels=channels))
    with progress_display("questions", len(wanted)) as show:
        for done in write_questions(folder, wanted):
            show(done, len(wanted), partial(_describe, done, len(wanted)), False)
    print_message(
        f"{len(wanted)} questions are in {folder}; play: everlearn ask play {folder} random"
    )


@app.command()
def play(
    folder: Annotated[Path, typer.Argument(help="A set of questions.", show_default=False)],
    player: PlayerName,
    name: Name = None,
    seed: Annotated[int, typer.Option(help="What the player random guesses from.")] = 0,
    run: RunFolder = None,
    device: Device = "auto",
    base_url: BaseUrl = None,
    model: Model = None,
    key_env: KeyEnv = "OPENAI_API_KEY",
    max_tokens: MaxTokens = 16,
    also: Also = "{}",
    timeout: Timeout = 60.0,
    retries: Retries = 6,
    wait: Wait = 1.0,
    parallel: Parallel = 1,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
) -> None:
    """Let a player answer. Run again, it asks only what has no answer yet."""
    from everlearn.cli.answer_table import print_answers, print_cost
    from everlearn.cli.players import PlayerOptions

    endpoint = (base_url, model, key_env, max_tokens, also, timeout, retries, wait, parallel)
    record = _answer_all(folder, player, name, PlayerOptions(seed, run, device, *endpoint))
    print_answers(record.rows)
    print_cost(record.rows, price_in, price_out)
    print_message(f"the answers are in {record.folder}")


def _answer_all(folder: Path, player: str, name: str | None, typed: "PlayerOptions") -> "Record":
    """Make a player ready and keep what it answers in a folder of its own."""
    from everlearn.cli.players import folder_name, make_player
    from everlearn.questions import QuestionFolder, open_record

    kept = QuestionFolder(folder)
    ready = make_player(player, kept, typed)
    place = folder / PLAYERS_FOLDER / folder_name(name or ready.name)
    with open_record(place, ready.settings, kept.set, ready.gpu) as record:
        _answer_or_explain(record, ready, kept.set)
    return record


def _answer_or_explain(record: "Record", ready: "Player", questions: "QuestionSet") -> None:
    """Ask what is left, or say how to go on after a stop."""
    try:
        _show_answers(record, ready, questions)
    except KeyboardInterrupt:
        raise StoppedError(f"stopped by hand; {_kept(record, questions)}") from None
    except ConnectionError as error:
        raise ConnectionError(f"{error}; {_kept(record, questions)}") from None


def _show_answers(record: "Record", ready: "Player", questions: "QuestionSet") -> None:
    """Ask what is left and show how it is going."""
    from everlearn.questions import ask_all

    total, left = len(questions), record.left(questions)
    rows = ask_all(left, ready.ask, record.keep, ready.parallel)
    # Closed at any stop, so that answers under way are kept while the folder is still held.
    with progress_display(record.folder.name, total) as show, closing(rows):
        for done, _ in enumerate(rows, total - len(left) + 1):
            tenth = done * _PARTS // total > (done - 1) * _PARTS // total
            show(done, total, partial(_describe, done, total), tenth)


def _describe(done: int, total: int) -> str:
    return f"{done} of {total}"


def _kept(record: "Record", questions: "QuestionSet") -> str:
    done = f"{len(record.rows)} of {len(questions)} answers are kept in {record.folder}"
    return f"{done}; run the same again to go on"
