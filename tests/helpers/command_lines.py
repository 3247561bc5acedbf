"""Command lines that work, in the folder of command_fuzz.prepare, and together have every option."""

import shlex

from npformer.cli.main import make_parser

TINY = "--set schedule=constant --set d_model=16 --set d_ff=16 --set n_heads=2 --set n_layers=1"
GPT = "--set d_model=8 --set n_heads=2 --set n_layers=1 --set context=16 --batch-size 2 --workers 1"
BERT = "--set d_model=8 --set n_heads=1 --set n_layers=1"

LINES = f"""
train train.en train.fr --run runs/new --steps 3 {TINY} --seed 1 --valid train.en train.fr --limit 20 \
 --max-length 20 --vocab-size 50 --min-count 1 --batch-size 4 --backend numpy --workers 2 --unfiltered \
 --cased --preset small
train --task copy --steps 1 --architecture small --threads 1 --run new {TINY}
train train.en.gz train.fr --subwords 30 --unfiltered --steps 1 {TINY} --set tied=none
train --direction fr-en --steps 1 {TINY} --set norm=post --set positions=relative --batch-size 2
train --task reverse --architecture rnn-global --steps 1 --set d_hidden=8 --set d_model=8 --set clip_norm=1
train --preset multi30k-en-de --data folder --steps 1 --workers 1 {TINY} --set dropout=0 --set seed=3
train --text train.en --tokens subwords --vocab-size 30 --steps 1 {GPT}
train --text raw.de --preset gpt-shakespeare --architecture gpt-small --tokens bytes --steps 1 {GPT}
train --text train.en --steps 1 --start-from runs/text --architecture gpt2 {GPT}
train --preset bert-small --text train.en --vocab-size 20 --min-count 1 --cased --steps 1 {BERT}
train --resume runs/tiny --steps 3 --workers 2
train --resume runs/rnn --steps 3 --backend numpy --threads 1
curves runs/tiny --out new.png
translate 'the cat' 'a cat sleeps' --model runs/tiny --last --beam 2 --length-penalty 0.5 --backend numpy
translate 'the dog eats' --model runs/rnn --beam 1
translate 'the cat' --model runs/tiny --beam 2 --n-best 2 --scores --alignment
translate 'the cat' --model runs/tiny --json
translate 'the dog eats' --model toy.safetensors
generate 'the cat' le --model runs/text --last --tokens 3 --temperature 0.8 --top-k 5 --top-p 0.9 --seed 1 \
 --stop dog --backend numpy
generate 'the cat' --model runs/text --greedy
generate --perplexity train.en --model runs/text
fill 'the [MASK] sleeps' --model runs/sentences --last --answers 2 --json --backend numpy
score train.en train.fr --model runs/tiny --last --beam 2 --length-penalty 1 --backend numpy --text raw \
 --limit 2 --known-words train.fr --seed 3 --out new.txt --json
attention 'the cat sleeps' --model runs/tiny --last --kind encoder --layer 0 --head 0 --word cat --out new
attention 'the cat' --model runs/text --out new
attention 'the [MASK]' --model runs/sentences
explore 'the cat' --model runs/tiny --last --target 'le chat' --out new.html --open
explore 'the cat' 'the dog' --model runs/text --backend numpy --language zh
saliency 'the cat' --model runs/text --last --target s --position 1 --score logit --points 8 --tolerance 0.5 \
 --out new.png
saliency 'the [MASK] sleeps' --model runs/sentences --method gradient
lens 'the cat' --model runs/text --last --position 1 --out new.png
lens 'the cat' --model runs/text --parts --target s --versus a --position 1
patch 'the cat' 'the dog' --model runs/text --last --what heads --target s --versus a --position 1 \
 --out new.png
masks 'je suis' --pad 1 --causal --window 1 --layer 0 --head 1 --seed 3 --out new
masks 'je suis' --causal --mistake shifted
masks 'le chat' --cross 'the cat' --model runs/tiny --last
gradcheck softmax --method difference --seed 1 --json
gradcheck softmax --verbose
gradcheck softmax --list
gradcheck softmax --backend cupy
gradcheck own.py:double --shape 2,3 --seconds 30
gradcheck 'the cat' --model runs/tiny --last --seconds 30 --seed 1 --json
inspect runs/tiny --last --json
inspect toy.safetensors
figures F23 --list --json
figures F23 --out new --svg
figures F07 --model runs/tiny
data multi30k --folder new --languages en,de --from copy
data multi30k --languages en --base-url http://127.0.0.1:9/
pretrained en-de --json
pretrained --markdown
pretrained --export runs/toy --last --out new.safetensors --card card.json --casing raw.de --scores s.json
pretrained --export runs/sentences --last --layout bert --out new
lesson 1.1 --notebook 1.ipynb --html 1.html
lesson 5.1 --restart --figures new --language zh
lessons
lessons --write new.md
lessons --route engineers --language zh
exercise list 5 --dir exercises --language zh
exercise start softmax --dir exercises
exercise check --all --seconds 5 --dir exercises
exercise check softmax-backward --png new.png --dir exercises
exercise solution softmax-backward
bugs start 3 --dir new --language zh
bugs check --all --seconds 5 --dir repairs
bugs check 3 --png new.png --dir repairs
build 'the cat' --train --dir exercises --steps 2 --seconds 5 --language zh
class export nbgrader new --name week-1 --exercise 5 --points 3 --seed 1 --seconds 5 --memory 512 \
 --language zh
class export gradescope new --exercise softmax --points 3 --seed 1 --seconds 5 --memory 512
class grade exercises --exercise softmax --points 2 --seed 1 --seconds 5 --memory 512 --workers 1 --out new \
 --csv new.csv
class mistakes --exercise softmax
class mistakes --write teaching.md
site new --only 5.1 --model runs/tiny
experiment scaling --out new.json
family --json
family --measure --steps 2 --seed 1 --seeds 2 --out folder
family --search --steps 2 --seed 1 --out folder
bench --only tiny --against torch-compiled --repeats 2 --seconds 0.1 --workers 2 --backend numpy --json -
bench --profile --only tiny --seconds 0.1 --backend numpy --json new.json
bench --curves new.png --json -
bench --decoding --workers 2 --json -
index softmax
index --write new.md
glossary softmax --language zh
glossary --write new.md
tour --steps 1 --seed 1 --out new --backend numpy --verbose --language zh
""".strip().splitlines()


def texts_in(line):
    """Yield the names of the arguments of a command line that take any text, each with its last value."""
    command, *others = shlex.split(line)
    parser = make_parser(command)
    arguments = parser.parse(others)
    for action in parser._actions:
        if action.dest in arguments.given and action.nargs != 0 and action.type is None:
            value = getattr(arguments, action.dest)
            yield action.dest, value[-1] if isinstance(value, list) else value
