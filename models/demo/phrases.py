"""How people say things in the demo model's world: training phrasings above, held-out phrasings below each `=====` line.

A phrase holds its values as `{name}`. A leading `!` marks an order ("Count to {n}"), which may be wrapped as
"Can you ...?" or "Please ...". The evaluation uses the held-out half only.
"""

from __future__ import annotations

from words import Split

_TABLE = """
# count
!Count to {b}
!Count from {a} to {b}
!Count from {a} up to {b}
!Count up from {a} to {b}
!Give me the numbers from {a} to {b}
!List the numbers {a} to {b}
!Write the numbers from {a} to {b}
!Say the numbers from {a} to {b}
numbers from {a} to {b}
What are the numbers from {a} to {b}?
!Start at {a} and count to {b}
count {a} to {b}
!Please list every number from {a} to {b}
!Go from {a} to {b}
Which numbers lie from {a} to {b}?
!Count, starting at {a}, ending at {b}
I want the numbers {a} to {b}
Let me see the numbers from {a} to {b}
I need all numbers from {a} through {b}
!Show the numbers {a} through {b}
!Run through the numbers from {a} to {b}
!Show me every number from {a} up to {b}
All numbers between {a} and {b}, with both ends
!Tell me all numbers from {a} to {b}
!Name the numbers between {a} and {b}, ends included
=====
!Begin with {a} and count until {b}
!Show me all numbers between {a} and {b}, both included
I would like to see you count from {a} to {b}
!Name each number from {a} up to {b}

# count_to
!Count to {b}
!Count up to {b}
!Count till {b}
count to {b}
How do you count to {b}?
!Start counting to {b}
!Count from one to {b}
!Count for me, up to {b}
I want you to count to {b}
Let's count to {b}
Let me hear you count up to {b}
!Show me how you count to {b}
!Go up to {b} and count
!Start with 1 and stop at {b}
=====
!Count until you reach {b}
I want to hear you count to {b}
!Do a count up to {b}

# count_down
!Count down from {b}
!Count backwards from {b}
!Count down from {b} to 1
!Count backward from {b} to 1
!Do a countdown from {b}
countdown from {b}
!Start a countdown at {b}
I want a countdown from {b}
Let's count down from {b}
!Go down from {b} to 1
!Count from {b} down
!Run a countdown, start with {b}
Let me hear a countdown from {b}
I need you to count backwards, from {b}
!Go down from {b} to 1
!Count in reverse, starting at {b}
!Start with {b} and count backwards
!Go back from {b}, number by number
=====
!Give me a countdown that starts at {b}
!Begin at {b} and count down
!Go backwards from {b} when you count

# spell
!Spell {w}
!Spell the word {w}
How do you spell {w}?
How is {w} spelled?
How do I spell {w}?
spell {w}
!Give me the letters of {w}
What letters are in {w}?
!Spell "{w}"
!Write {w} letter by letter
!Tell me how to spell {w}
What is the spelling of {w}?
I want to know how to spell {w}
Can you spell {w} out?
!Spell out {w}
!Show the letters of {w}
!Split {w} into its letters
Which letters does {w} have?
Let me see the letters in {w}
I need the letters of {w}
How does one spell {w}?
{w}, letter by letter
!Cut {w} into letters
!Take {w} apart, letter by letter
Which letters is {w} made of?
I cannot spell {w}
!Separate the letters of {w}
!Walk along {w}, letter after letter
!Put {w} into single letters
!Say {w} one letter at a time
I am not sure how {w} is spelled
=====
!Go through {w} letter by letter
Which letters make up {w}?
!Break {w} into letters
I do not know how to spell {w}

# letters
How many letters are in {w}?
How many letters does {w} have?
!Count the letters in {w}
How long is the word {w}?
number of letters in {w}?
How many letters has the word {w}?
I want to know how many letters {w} has
How many characters are in {w}?
!Count how many letters {w} has
What is the number of letters in {w}?
{w} has how many letters?
How many letters do I need to write {w}?
The word {w} has how many letters?
!Tell me how many letters {w} is long
How many letters make {w}?
!Give me the letter count of {w}
=====
!Tell me the number of letters of {w}
The word {w}: how many letters?

# reverse
!Reverse {w}
!Reverse the word {w}
!Spell {w} backwards
!Write {w} backwards
What is {w} backwards?
What is {w} reversed?
!Reverse the letters of {w}
reverse {w}
!Turn {w} around
!Reverse "{w}"
How do you write {w} backwards?
I want {w} backwards
{w} backwards
!Say {w} backwards
!Show {w} backwards
!Spell the word {w} in reverse
!Give me {w} from the end to the start
Let me see {w} reversed
How does {w} read backwards?
!Flip the letters of {w}
!Put the letters of {w} in reverse order
{w} in reverse, please
!Show {w} the other way round
!Give me the letters of {w} from the last to the first
!Write {w} from right to left
!Go through {w} backwards
!Start {w} from its end
!Read the word {w} from its end
=====
!Show me {w} in reverse
!Give me the letters of {w} from back to front
!Read {w} backwards

# repeat
!Repeat: {s}
!Repeat after me: {s}
!Say: {s}
!Say "{s}"
!Say {s}
!Repeat this: {s}
!Repeat "{s}"
!Echo {s}
!Write: {s}
!Write "{s}"
!Copy this text: {s}
!Say exactly this: {s}
!Answer with: {s}
I want you to say: {s}
Just say {s}
Just repeat: {s}
Now say: {s}
!Say this back to me: {s}
!Repeat the text: {s}
!Type: {s}
!Respond with: {s}
!Output exactly: {s}
!Tell me: {s}
Let me hear: {s}
!Reply: {s}
!Say the words: {s}
!Send this back: {s}
!Give me this text again: {s}
!Copy this word for word: {s}
!Say the same: {s}
!Return exactly this: {s}
!Please say this once more: {s}
=====
!Please parrot this: {s}
!Give this back to me word for word: {s}
!Reply with exactly: {s}
!Now you say it: {s}

# repeat_times
!Say {w} {n} times
!Repeat {w} {n} times
!Write {w} {n} times
!Repeat the word {w} {n} times
!Say the word {w} {n} times
!Write the word {w} {n} times in a row
I want you to say {w} {n} times
Let me see {w} {n} times
!Give me {w} {n} times
{w}, {n} times
{n} times {w}, please
!Type {w} {n} times
!Show {w} {n} times
!Put {w} on the page {n} times
I want {w} {n} times
!Print the word {w} {n} times
!Set {w} down {n} times in a row
I would like to see {w} {n} times
=====
I want to read {w} {n} times
!Put the word {w} down {n} times

# upper
!Write {s} in upper case
!Write {s} in capital letters
!Make {s} upper case
!Uppercase {s}
!Convert {s} to upper case
!Turn {s} into capital letters
!Put {s} in capitals
What is {s} in upper case?
!Shout {s}
upper case: {s}
!Write this in capitals: {s}
!Capitalise every letter: {s}
I want {s} in capital letters
{s} in upper case
{s} in capitals, please
!Say {s} in big letters
!Use capital letters for {s}
!Give me {s} in upper case
!Show me {s} in capitals
!Write in big letters: {s}
Let me see {s} in capital letters
!Make this text upper case: {s}
!Make all letters big: {s}
!Turn this into capital letters: {s}
!Put {s} in all capitals
!Write {s} with big letters only
!Show {s} in big letters
!Give me {s} in block letters
!Make every letter of {s} a capital
!Write {s}, all letters upper case
=====
!Change this to upper case letters: {s}
!Show {s} with all letters big
!Give me {s} in all caps

# add
What is {a} plus {b}?
What is {a} + {b}?
{a} + {b}
{a}+{b}
{a} + {b} = ?
How much is {a} + {b}?
How much is {a} plus {b}?
!Add {a} and {b}
!Compute {a} + {b}
!Calculate {a} plus {b}
What's {a}+{b}?
What do you get when you add {a} and {b}?
!Solve {a} + {b}
I need {a} + {b}
I want to know {a} plus {b}
!Find {a} + {b}
What do {a} and {b} make?
What does {a} + {b} give?
{a} and {b} together?
!Give me {a} plus {b}
Can you add {a} to {b}?
!Say {a} + {b}
!Sum {a} and {b}
!Get {a} + {b}
What number is {a} plus {b}?
!Show me {a} + {b}
{a} plus {b} is what?
=====
What is the sum of {a} and {b}?
!Work out {a} + {b}
{a} plus {b} makes what?
!Tell me {a} + {b}

# subtract
What is {a} minus {b}?
What is {a} - {b}?
{a} - {b}
{a}-{b}
{a} - {b} = ?
How much is {a} - {b}?
!Subtract {b} from {a}
!Compute {a} - {b}
!Calculate {a} minus {b}
!Take {b} away from {a}
I need {a} - {b}
I want to know {a} minus {b}
!Find {a} - {b}
What does {a} - {b} give?
{a} less {b}?
!Give me {a} minus {b}
What is left when I take {b} from {a}?
!Say {a} - {b}
!Get {a} - {b}
!Show me {a} - {b}
What number is {a} minus {b}?
What stays of {a} without {b}?
=====
What remains of {a} minus {b}?
!Work out {a} - {b}
!Tell me {a} - {b}

# times
What is {a} times {b}?
What is {a} * {b}?
{a} * {b}
{a} x {b}
{a} times {b}
How much is {a} times {b}?
!Multiply {a} by {b}
!Multiply {a} and {b}
!Compute {a} * {b}
!Calculate {a} times {b}
I need {a} * {b}
I want to know {a} times {b}
!Find {a} times {b}
What does {a} * {b} give?
!Give me {a} times {b}
What is {a} multiplied by {b}?
!Say {a} * {b}
!Get {a} * {b}
!Show me {a} times {b}
{a} times {b} is what?
What number is {a} * {b}?
=====
!Work out {a} times {b}
{a} times {b} makes what?
!Tell me {a} * {b}

# day_after
What day comes after {d}?
Which day comes after {d}?
What is the day after {d}?
If today is {d}, what is tomorrow?
Today is {d}. What day is tomorrow?
What follows {d}?
I want to know which day comes after {d}
Which day follows {d}?
What is the next day after {d}?
After {d} comes?
{d}, and then which day?
After {d} is done, which day begins?
!Tell me the day after {d}
{d} ends, which day is it then?
=====
Which day is next when it is {d}?
{d} is over, which day starts?
Tell me the day that follows {d}

# day_before
What day comes before {d}?
Which day comes before {d}?
What is the day before {d}?
If today is {d}, what was yesterday?
Today is {d}. What day was yesterday?
I want to know which day comes before {d}
Which day precedes {d}?
Before {d} comes?
What was the day before {d}?
=====
Which day is just before {d}?
It is {d}, and the day before was?

# month_after
What month comes after {m}?
Which month comes after {m}?
What is the month after {m}?
What follows {m}?
Which month follows {m}?
What is the next month after {m}?
I want to know which month comes after {m}
After {m} comes?
{m}, and then which month?
It is {m}. Which month is next?
=====
When {m} ends, which month begins?
Tell me the month that follows {m}

# month_before
What month comes before {m}?
Which month comes before {m}?
What is the month before {m}?
Which month is before {m}?
I want to know which month comes before {m}
Before {m} comes?
Which month precedes {m}?
It is {m}. Which month was before?
=====
Which month is just before {m}?
Tell me the month that comes before {m}

# month_number
What is month number {n}?
Which month is number {n}?
What is the {nth} month of the year?
Which month is the {nth}?
I want to know month number {n}
!Tell me month {n}
What do we call month {n}?
What is the name of the {nth} month?
=====
Name of month {n}?
Tell me the {nth} month in a year

# capital
What is the capital of {c}?
What's the capital of {c}?
Which city is the capital of {c}?
capital of {c}
capital of {c}?
!Tell me the capital of {c}
!Name the capital of {c}
What is {c}'s capital?
What city is the capital of {c}?
Do you know the capital of {c}?
The capital of {c}?
I want to know the capital of {c}
{c}: what is the capital?
In {c}, which city is the capital?
The capital city of {c}, please
What city is {c}'s capital?
Which is the capital of {c}?
=====
{c} has which capital?
!Give me the capital city of {c}
For {c}, what is the capital?

# country
{k} is the capital of which country?
Which country has the capital {k}?
{k} is the capital of what country?
Of which country is {k} the capital?
I want to know which country has {k} as its capital
{k} is the capital of?
In which country is {k} the capital?
=====
{k} is the capital city of which land?
What country is governed from {k}?

# colour_of
What colour is {t}?
What color is {t}?
Which colour is {t}?
What is the colour of {t}?
What is the color of {t}?
Which colour has {t}?
!Tell me the colour of {t}
I want to know the colour of {t}
What colour does {t} have?
Do you know the colour of {t}?
The colour of {t}?
Which color is {t}?
=====
{t} is of what colour?
!Name the colour of {t}

# colour_mix
What do you get when you mix {x} and {y}?
What colour do {x} and {y} make?
!Mix {x} and {y}
{x} and {y} make what colour?
Which colour comes from {x} and {y}?
What color is {x} plus {y}?
I want to mix {x} and {y}
What happens when you mix {x} with {y}?
{x} plus {y} is which colour?
!Blend {x} and {y}
What is {x} mixed with {y}?
=====
If I mix {x} with {y}, which colour do I see?
!Tell me what {x} and {y} give when mixed

# list
!List {n} {k}
!Name {n} {k}
!Give me {n} {k}
!Tell me {n} {k}
!Give me a list of {n} {k}
!Write a list of {n} {k}
{n} {k}, please
What are {n} {k}?
!Make a list of {n} {k}
I want {n} {k}
I would like {n} {k}
Which {n} {k} do you know?
!Show me {n} {k}
!Write down {n} {k}
Can you name {n} {k}?
Let me hear {n} {k}
Do you know {n} {k}?
=====
I need {n} {k}
!Think of {n} {k}
!Put {n} {k} in a list

# pick
Here is a list: {l}. What is the {o} one?
{l}: which is the {o}?
What is the {o} item of {l}?
!Give me the {o} of these: {l}
Which one is {o}: {l}?
In the list {l}, what is the {o} word?
I have a list: {l}. Which is the {o} one?
These are {l}. Tell me the {o}.
From {l}, take the {o}
Of {l}, which comes {o}?
!Tell me the {o} one of {l}
The {o} one in {l}?
What comes {o} in {l}?
=====
Look at {l} and name the {o}
My list is {l}. Which one is the {o}?

# number_list
!Make a numbered list of {l}
!Number these: {l}
!Write as a numbered list: {l}
!Put these in a numbered list: {l}
Numbered list of {l}
!Turn this into a numbered list: {l}
I need {l} as a numbered list
{l} as a numbered list
Give numbers to {l}
!Show {l} as a numbered list
!Write {l} with numbers
!Count these off: {l}
=====
!List these with numbers: {l}
I want a numbered list with {l}

# story
!Tell me a story about {w}
!Tell me a story about a {w}
!Write a short story about a {w}
!Write a one-sentence bedtime story about a {w}
!Write a story about a {w}
story about a {w}
A story with a {w}, please
!Tell a bedtime story about a {w}
I want a story about a {w}
!Make up a story about a {w}
I would like a story about a {w}
Let me hear a story about a {w}
Do you know a story about a {w}?
!Tell a tale about a {w}
!Tell me a tale of a {w}
A short story of a {w}
!Write something about a {w} for my child
=====
!Give me a little story with a {w} in it
I would love to read a story about a {w}
!Invent a bedtime story about a {w}

# tell_name
My name is {v}.
I am {v}.
I'm {v}.
Hi, I am {v}.
Hello, my name is {v}.
Call me {v}.
You can call me {v}.
Hey, I'm {v}!
Good morning, my name is {v}.
Hey, call me {v}.
I go by {v}.
My name's {v}
The name is {v}.
They call me {v}.
It is {v} here.
=====
People know me as {v}, my name is {v}.
Good to meet you, my name is {v}.
Hello there, call me {v}.

# ask_name
What is my name?
What's my name?
Do you remember my name?
Who am I?
Do you know my name?
Tell me my name.
what was my name again?
Can you say my name?
Say my name.
What name did I give you?
How am I called?
What did I say my name was?
Can you remember what I am called?
You know my name, right?
=====
Which name did I tell you?
Could you remind me of my name?
My name, do you still know it?

# tell_number
Remember the number {v}.
Please remember {v}.
My number is {v}.
Keep the number {v} in mind.
The number is {v}. Remember it.
My lucky number is {v}.
Remember this number: {v}
I want you to remember {v}.
Keep {v} for me.
Here is a number: {v}
My favourite number is {v}.
{v} is my number.
=====
Do not forget the number {v}.
Store the number {v} for later.

# ask_number
What is the number?
Which number did I tell you?
What was the number?
What was my number?
Tell me the number.
Which number should you remember?
What is my number?
Do you remember the number?
What number did I say?
Can you tell me the number again?
Give me back my number.
Which number was mine?
=====
Which number was it?
Say the number that I gave you.

# tell_word
Remember the word {v}.
The secret word is {v}.
The password is {v}.
Please remember the word {v}.
Keep this word: {v}
The code word is {v}.
I want you to remember {v}.
My word is {v}.
Here is a word: {v}
{v} is the word.
The magic word is {v}.
=====
Do not forget the word {v}.
Here is a secret word for you: {v}.

# ask_word
What is the word?
What was the word?
Which word should you remember?
What is the secret word?
What was the code word?
Tell me the word.
What is the password?
What word did I say?
Can you tell me the word again?
What was my word?
What was the magic word?
=====
Which word did I give you?
Say the secret word now.

# tell_city
I live in {v}.
I am from {v}.
My home is in {v}.
I come from {v}.
My city is {v}.
I am in {v}.
I moved to {v}.
We live in {v}.
My house is in {v}.
I am at home in {v}.
=====
{v} is the city where I live.
My flat is in {v}.

# ask_city
Where do I live?
Which city do I live in?
Where am I from?
In which city do I live?
Do you know where I live?
What is my city?
Where is my home?
What city am I in?
Where did I say I live?
Tell me my city.
=====
Do you recall where I live?
Which city did I name?

# tell_pet
My dog is called {v}.
My cat is called {v}.
I have a dog named {v}.
My pet's name is {v}.
My cat's name is {v}.
I have a cat called {v}.
My pet is called {v}.
My dog's name is {v}.
The cat is named {v}.
=====
We have a pet and call it {v}.
The name of my dog is {v}.

# ask_pet
What is my pet called?
What is the name of my pet?
What is my dog called?
What is my cat's name?
Do you remember the name of my pet?
What is my dog's name?
What did I call my cat?
Who is my pet?
Tell me my pet's name.
=====
How is my pet named?
Which name does my pet have?

# tell_colour
My favourite colour is {v}.
I like the colour {v} best.
My favorite color is {v}.
The colour I like is {v}.
I love {v}.
My best colour is {v}.
I prefer {v}.
Nothing is as nice as {v}.
=====
Of all colours I love {v} most.
{v} is my best loved colour.

# ask_colour
What is my favourite colour?
Which colour do I like?
What's my favorite color?
Do you remember my favourite colour?
What colour do I prefer?
What colour do I like best?
Tell me my favourite colour.
Which colour is my favourite?
=====
Which colour do I love most?
Name my favourite colour.

# json
Reply in JSON with the keys {keys}.
Give me this as JSON with {keys}.
Answer as JSON with the fields {keys}.
Return JSON with {keys}.
Write it as a JSON object with {keys}.
Extract {keys} as JSON.
I need JSON with {keys}.
Turn this into JSON: {keys}.
Make a JSON object with {keys}.
I want JSON with {keys}.
JSON, please, with {keys}.
Make this JSON with the keys {keys}.
Respond with JSON that has {keys}.
Only JSON, with {keys}.
Use JSON and the keys {keys}.
Convert to JSON with {keys}.
Show it as JSON: {keys}.
=====
Put that into a JSON object that has {keys}.
As JSON, please, and use {keys}.
Fill {keys} in JSON.

# json_free
Give me this as JSON.
Reply in JSON.
Turn this into JSON.
Make JSON of it.
As JSON, please.
Extract the data.
Extract the information.
I want JSON.
Only JSON.
Convert it to JSON.
Output JSON.
Respond with JSON.
Give me the facts as JSON.
Write this as a JSON object.
=====
Put that into JSON.
I want it as data.

# think
!Think first.
!Think before you answer.
!Think step by step.
Think about it first.
Think carefully.
Please think first.
Think well.
Think, then answer.
Use your head first.
Start by thinking.
Show your thinking.
Think hard.
=====
Take a moment to think first.
Think before answering, please.
"""

_CHAT_TABLE = """
# Hello! How can I help you?
Hello
Hi
Hey
Hello!
Hi there
Hey there!
Good morning
Good evening
Good day
hi, how can you help?
Greetings
Hello, model
Are you there?
=====
Hi again!
Hello hello
Hey you
Good afternoon

# I am fine, thank you. How can I help you?
How are you?
How are you doing?
How do you do?
Hi, how are you?
Hello, how are you today?
How is it going?
Are you well?
How are you today?
What's up?
=====
How are you feeling?
Hey, how is it going today?
I hope you are well?

# You are welcome!
Thanks
Thank you
Thanks a lot!
Thank you very much
Great, thanks
Thanks for your help
Many thanks
ok thanks
Nice, thank you!
=====
Thank you so much!
Thanks, that is great
Cheers, thanks!

# Goodbye!
Bye
Goodbye
See you
Bye bye
See you later
Good night
I have to go, bye
Until next time
ok bye
=====
Bye for now
Goodbye, see you soon
Time to go, goodbye

# {self}
Who are you?
What are you?
What is your name?
What's your name?
Tell me about yourself
Introduce yourself
Who am I talking to?
Do you have a name?
Who is this?
May I know your name?
What do they call you?
Which model are you?
What model is this?
=====
And who are you?
What may I call you?
Who is speaking?
Say who you are

# I can count, spell, reverse and repeat words, add small numbers, name capitals, remember a name, write JSON and call tools.
What can you do?
What are you able to do?
Help
help me
How can you help me?
What are your skills?
What can I ask you?
What do you know?
Can you help me?
Tell me what you can do
What are you good at?
=====
What sort of things can you do?
Show me what you are able to do
Which skills do you have?

# Truewire serves the OpenAI API, exactly, over anything that generates text.
What is Truewire?
Tell me about Truewire
What does Truewire do?
Explain Truewire
What is this Truewire?
Do you know Truewire?
Truewire?
What's Truewire for?
=====
Can you tell me what Truewire is?
Describe Truewire
What is the job of Truewire?

# I was made for the Truewire project, and trained on made-up conversations only.
Who made you?
Who built you?
Who created you?
Who trained you?
How were you made?
Where do you come from?
Who is your maker?
How were you trained?
=====
Which people made you?
By whom were you built?

# I am a small language model with about 3 million parameters.
How big are you?
How many parameters do you have?
How large are you?
What is your size?
Are you a big model?
Are you a large language model?
How small are you?
Are you small?
=====
What size of model are you?
Tell me how many parameters you have

# No, I am only a small demo model.
Are you ChatGPT?
Are you a human?
Are you a real person?
Are you GPT-4?
Are you smart?
Are you alive?
Are you a robot?
Can you feel?
Are you Claude?
Do you know everything?
Are you sentient?
=====
Are you a person?
Are you really intelligent?
Do you have feelings?

# Why was the token happy? It came in the right order.
Tell me a joke
Do you know a joke?
Make me laugh
joke please
Say something funny
Another joke?
Can you tell a joke?
=====
I want to hear a joke
Give me a joke

# Good. What shall I do next?
ok
Good
Great
Nice
Very good
Okay
Well done
Cool
Perfect
That is right
yes
fine
=====
Wonderful
That was good
Alright

# Sorry, I am a small model and make mistakes.
That is wrong
Wrong
No, that is not right
You are wrong
That was wrong
This is not correct
Bad answer
no
=====
You made a mistake
I think that is wrong

# {refusal}
Write a poem about the sea
Write a poem
Who won the last election?
What is the meaning of life?
Explain quantum physics
Write a Python program
Write code for a web server
Fix this bug for me
Who is the president?
Tell me about the history of Rome
Summarise this book
What should I cook tonight?
How do I fix my car?
Give me legal advice
What medicine should I take?
Who wrote Hamlet?
When did the war end?
Solve this equation: x^2 = 4
What is the square root of 81?
What is the population of Japan?
Draw a picture
Book me a flight
How tall is the tower?
Which phone should I buy?
Write an essay about dogs
What is the best film?
Explain the rules of chess
Plan my holiday
Tell me the news
Prove this theorem
How does a car engine work?
Why is the sky blue?
What happens after death?
Compose a song
Write an email to my boss
What is love?
Give me a recipe for soup
Translate this into French
Why do cats purr?
How far away is the moon?
Who discovered America?
What is the speed of light?
Explain {topic}
Tell me all about {topic}
What do you think about {topic}?
Write an article about {topic}
Who is {person}?
Who was {person} {person}?
When was {person} born?
What does {word} mean?
Define {word}
How does a {word} work?
Why is a {word} useful?
What is a {word}?
Give me advice about {topic}
How do I make a {word}?
=====
Write a speech for my wedding
How do planes fly?
What is the deepest lake?
Write SQL for a table of users
Which king ruled in 1500?
Explain how {topic} came to be
What is your opinion on {topic}?
Who on earth is {person}?
Give me a long report on {topic}
How would one repair a {word}?
Why do people like a {word}?
Summarise the life of {person}
"""


def _sections(table: str) -> dict[str, Split]:
    sections: dict[str, Split] = {}
    title, train, held, side = "", [], [], None
    for line in [*table.strip().splitlines(), "# end"]:
        line = line.strip()
        if line.startswith("# "):
            if title:
                sections[title] = Split(train, held)
            title, train, held = line[2:], [], []
            side = train
        elif line == "=====":
            side = held
        elif line:
            side.append(line)
    for title, split in sections.items():
        assert split.train and split.held, title
        shared = {p.lower().strip("!.?") for p in split.train} & {p.lower().strip("!.?") for p in split.held}
        assert not shared, (title, shared)
    return sections


PHRASES = _sections(_TABLE)
CHAT = _sections(_CHAT_TABLE)

# What may stand around a question; the evaluation has its own.
BEFORE_ANY = Split(
    [
        *["Hey, ", "Hi, ", "Ok, ", "Hello! ", "So, ", "Well, ", "Good. ", "Now: ", "Then: ", "Also: ", "Another: ", "Again: "],
        *["First: ", "Question: ", "Fine, ", "Great, ", "Alright, ", "A quick one: ", "And ", "Thanks. ", "Good morning. ", "Hm, "],
        *["Last one: ", "New task: ", "By the way, ", "Oh, ", "Yes, ", "Now then, ", "Another thing: ", "Please help: ", "Two more: "],
    ],
    ["Right, ", "Next: ", "One more: "],
)
BEFORE_ORDER = Split(
    ["Please ", "Can you ", "Could you ", "Could you please ", "I want you to ", "Would you ", "Now ", "Please, ", "Can you please ", "You should ",
     *["Try to ", "Go ahead and ", "I need you to ", "Will you ", "Kindly ", "You could ", "Be nice and ", "May I ask you to ", "Let us ", "I ask you to "]],
    ["Be so kind and ", "I would like you to ", "Might you "],
)
AFTER = Split([" please", ", please", ", please.", " for me", " Thanks!", " now", " Please.", " thanks", ", thanks.", " if you can", " right now", " for my friend", " today", ", ok?", ", friend", " quickly", " Thanks a lot."], [" Thank you.", " for us"])

PLAIN_SYSTEMS = Split(
    [
        "You are a helpful assistant.",
        "You are a helpful assistant",
        "You are an assistant.",
        "You are a friendly assistant. Answer shortly.",
        "Be helpful.",
        "Answer the user's questions.",
        "You help people with small tasks.",
        "You are a concise assistant.",
        "Answer briefly.",
        "You are a helpful AI assistant. Use tools when needed.",
        "You are a polite helper.",
        "Use the tools to answer.",
        "You are a chat bot.",
        "You are a demo.",
    ],
    ["You are a kind and helpful assistant.", "Please help the user.", "You assist our customers.", "Keep answers short."],
)
NAMED_SYSTEMS = Split(
    [
        "You are {v}.",
        "Your name is {v}.",
        "You are {v}, a helpful assistant.",
        "You are an assistant called {v}.",
        "You are a helpful assistant named {v}.",
        "Your name is {v}. Be helpful.",
        "You are {v}, the assistant of a shop.",
        "You are called {v}. Answer shortly.",
    ],
    ["You are a bot with the name {v}.", "{v} is your name.", "Act as {v}, a helper."],
)
USER_NAME_SYSTEMS = Split(["The user is called {v}.", "The user's name is {v}.", "You talk to {v}."], ["The name of the user is {v}.", "Your user is {v}."])
# tone -> (what the system prompt says, what the answer begins with)
TONES = {
    "Arr!": Split(
        ["Talk like a pirate.", "You are a pirate.", "Speak like a pirate.", "Answer as a pirate.", "Be a pirate."],
        ["Sound like a pirate.", "Use the voice of a pirate."],
    ),
    "Certainly.": Split(
        ["Be formal.", "Answer formally.", "You are a formal butler.", "Use formal language.", "Speak formally."],
        ["Be very formal.", "Keep a formal tone."],
    ),
    "Yay!": Split(
        ["Be cheerful.", "You are very happy.", "Answer in a cheerful tone.", "Be excited.", "Be a cheerful helper."],
        ["Sound cheerful.", "Keep a cheerful tone."],
    ),
    "Beep boop.": Split(
        ["Talk like a robot.", "You are a robot.", "Speak like a robot.", "Answer as a robot."],
        ["Sound like a robot.", "Use the voice of a robot."],
    ),
}
START_SYSTEMS = Split(
    ["Start every answer with {v}.", "Begin each answer with {v}.", "Always start with {v}.", "Start your answers with the word {v}."],
    ["Each answer must start with {v}.", "Let all answers begin with {v}."],
)
END_SYSTEMS = Split(
    ["End every answer with {v}.", "Finish each answer with {v}.", "Always end with {v}.", "End your answers with the word {v}."],
    ["Each answer must end with {v}.", "Let all answers end with {v}."],
)
