"""The tools of the demo model's world, written as a table, and the tools that only the evaluation knows.

A row is: name | description | parameters | how people ask for it | how the evaluation asks for it.
A parameter is `name:type:kind`, where kind says what values look like (see `data.World.value`); a `?` after the
name makes it optional: it is in the call only when the question has a value for it. Questions are separated by `;`
and hold their values as `{parameter}`. `FAMILIAR` rows with a fifth column are evaluated as "seen-style" tools;
`UNFAMILIAR` rows never occur in training, neither their names nor their parameters nor their questions.
"""

from __future__ import annotations

from typing import NamedTuple


class Param(NamedTuple):
    name: str
    type: str
    kind: str
    optional: bool


class Tool(NamedTuple):
    name: str
    description: str
    params: list[Param]
    asks: list[str]
    held_asks: list[str]


FAMILIAR_ROWS = """
get_weather | Get the current weather in a city | city:string:city, unit?:string:unit | What is the weather in {city}?; How is the weather in {city}?; What's the weather like in {city}?; weather in {city}; Tell me the weather in {city}; Is it cold in {city}?; Is it warm in {city} today?; Weather for {city}, please; I want to know the weather in {city}; What is the weather in {city} in {unit}?; How warm is it in {city}, in {unit}?; Give me the weather of {city} in {unit}; Do I need a coat in {city}?; Is it raining in {city}?; temperature in {city}?; What's the temperature in {city} in {unit}? | How's the weather over in {city}?; What will I find outside in {city}, weather wise?; I am flying to {city}, what is the weather there?; Check the weather for {city} and use {unit}; Could you look up the temperature for {city}?
get_time | Get the current time in a time zone | timezone:string:timezone | What time is it in {timezone}?; What is the time in {timezone}?; time in {timezone}; Tell me the time in {timezone}; Current time in {timezone}?; How late is it in {timezone}?; Give me the time for {timezone}; What's the current time in {timezone}?; I need the time in {timezone}; clock in {timezone} | Which time do the clocks show in {timezone}?; How late is it right now for {timezone}?; Please check what time it is for {timezone}; time now, {timezone}
add | Add two numbers | a:integer:int, b:integer:int | Add {a} and {b}; Use the tool to add {a} and {b}; What is {a} plus {b}?; What is {a} + {b}?; Compute {a} + {b}; Sum {a} and {b}; {a} + {b}; add {a} to {b}; How much is {a} plus {b}?; Calculate {a} plus {b} with the tool | Work out {a} plus {b} with your tool; I have {a} and get {b} more, add them; Please total {a} and {b}; Let the tool add {a} and {b} for me
search | Search the web | query:string:topic | Search for {query}; Search the web for {query}; Look up {query}; Find pages about {query}; search {query}; Do a search for {query}; Find something about {query}; I want to read about {query}; Please look for {query}; What does the web say about {query}?; Google {query} | Run a web search on {query}; Can you dig up pages on {query}?; Look online for {query}; See what the internet says about {query}
get_stock_price | Get the price of a stock | symbol:string:ticker | What is the stock price of {symbol}?; Price of {symbol}?; How is {symbol} trading?; Stock quote for {symbol}; Show me the stock {symbol}; What does a share of {symbol} cost? | How much is one {symbol} share now?; Quote the stock {symbol} for me
convert_currency | Convert an amount of money to another currency | amount:number:int, source:string:currency, target:string:currency | Convert {amount} {source} to {target}; How much is {amount} {source} in {target}?; Change {amount} {source} into {target}; {amount} {source} in {target}; What are {amount} {source} worth in {target}? | Turn {amount} {source} into {target}; I have {amount} {source}, what is that in {target}?
send_message | Send a message to a person | recipient:string:person, text:string:sentence | Send {recipient} a message: {text}; Tell {recipient} that {text}; Message {recipient}: {text}; Write to {recipient}: {text}; Send a message to {recipient} saying {text}; Let {recipient} know that {text} | Drop {recipient} a note: {text}; Please inform {recipient} that {text}
send_email | Send an email | to:string:email, subject:string:topic | Send an email to {to} about {subject}; Email {to} about {subject}; Write an email to {to} with the subject {subject}; Mail {to}, subject {subject} | Please email {to} concerning {subject}; Send a mail with the subject {subject} to {to}
set_alarm | Set an alarm | time:string:clock | Set an alarm for {time}; Wake me at {time}; Alarm at {time}; Please wake me up at {time}; I have to get up at {time}; set my alarm to {time} | I need an alarm at {time}; Get me out of bed at {time}
set_timer | Start a timer | minutes:integer:small | Set a timer for {minutes} minutes; Start a timer of {minutes} minutes; Timer {minutes} minutes; Count down {minutes} minutes; remind me in {minutes} minutes | Put {minutes} minutes on the timer; I need a {minutes} minute timer
create_reminder | Create a reminder | task:string:chore, day:string:day | Remind me to {task} on {day}; On {day} remind me to {task}; Set a reminder for {day}: {task}; Reminder to {task} on {day}; I must {task} on {day}, remind me | Do not let me forget to {task} on {day}; Make a reminder for {day} to {task}
play_music | Play music by an artist | artist:string:person | Play {artist}; Play something by {artist}; Play music by {artist}; I want to hear {artist}; Put on {artist}; Play a song of {artist} | Let me listen to {artist}; Start playing songs by {artist}
get_news | Get the latest news about a topic | topic:string:topic | News about {topic}; What is the latest news on {topic}?; Show me news about {topic}; Any news on {topic}?; Give me the news about {topic} | What happened lately with {topic}? Get the news; Bring me the latest on {topic}
translate | Translate a text into a language | text:string:word, language:string:language | Translate {text} into {language}; Translate the word {text} to {language}; What is {text} in {language}?; How do you say {text} in {language}?; {text} in {language}, please | Put {text} into {language}; I need {text} translated to {language}
get_user | Look up a user by id | user_id:integer:int | Who is user {user_id}?; Look up user {user_id}; Show user {user_id}; Get the user with id {user_id}; Find user number {user_id} | Fetch the details of user {user_id}; Give me the record for user {user_id}
find_restaurant | Find a restaurant | cuisine:string:cuisine, city:string:city | Find a {cuisine} restaurant in {city}; Where can I eat {cuisine} food in {city}?; I want {cuisine} food in {city}; A good {cuisine} place in {city}?; Look for {cuisine} restaurants in {city} | Which {cuisine} restaurant should I try in {city}?; We would like {cuisine} food while in {city}
book_flight | Book a flight | origin:string:city, destination:string:city | Book a flight from {origin} to {destination}; I need a flight from {origin} to {destination}; Fly me from {origin} to {destination}; Flight {origin} to {destination}; Get me a ticket from {origin} to {destination} | Reserve a flight leaving {origin} for {destination}; Please arrange a flight to {destination} from {origin}
book_hotel | Book a hotel room | city:string:city, nights:integer:small | Book a hotel in {city} for {nights} nights; I need a room in {city} for {nights} nights; Hotel in {city}, {nights} nights; Reserve {nights} nights in {city}; Find me a bed in {city} for {nights} nights | I will stay {nights} nights in {city}, book a hotel; Get a hotel room for {nights} nights in {city}
turn_on_light | Turn on the light in a room | room:string:room | Turn on the light in the {room}; Light on in the {room}; Switch on the {room} light; It is dark in the {room}; Lights on, {room} | I need light in the {room}; Brighten the {room} please
set_temperature | Set the heating in a room | room:string:room, degrees:number:small | Set the {room} to {degrees} degrees; Heat the {room} to {degrees} degrees; Make it {degrees} degrees in the {room}; {room} to {degrees} degrees; I want {degrees} degrees in the {room} | Bring the {room} up to {degrees} degrees; Let the heating in the {room} be {degrees} degrees
get_balance | Get the balance of an account | account:string:code | What is the balance of account {account}?; Balance of {account}; How much money is in {account}?; Show the balance for account {account}; check account {account} | How much is left on account {account}?; Read me the balance for {account}
track_package | Track a package | tracking_number:string:code | Where is package {tracking_number}?; Track package {tracking_number}; Track {tracking_number}; Where is my parcel {tracking_number}?; Status of package {tracking_number} | Has parcel {tracking_number} arrived?; Follow the package {tracking_number} for me
create_user | Create a user account | name:string:person, age:integer:age | Create a user {name}, age {age}; Add the user {name} who is {age}; New user: {name}, {age} years old; Make an account for {name}, aged {age}; Register {name}, {age} | Set up an account for {name} who is {age} years old; Please register the user {name} with age {age}
multiply | Multiply two numbers | a:integer:int, b:integer:int | Multiply {a} by {b}; What is {a} times {b}?; {a} times {b}; Compute {a} * {b}; {a} * {b}; Use the tool for {a} times {b} | Take {a} times {b} with the tool; Please multiply {a} and {b}
roll_dice | Roll dice | sides:integer:small | Roll a die with {sides} sides; Roll a {sides} sided die; Throw a dice with {sides} sides; roll d{sides} | I need a throw of a {sides} sided die; Let a {sides} sided die roll
delete_file | Delete a file | path:string:path | Delete {path}; Delete the file {path}; Remove {path}; Please remove the file {path}; Get rid of {path} | Throw away the file {path}; Erase {path} for me
read_file | Read a file | path:string:path | Read {path}; Show me the file {path}; Open {path}; What is in {path}?; Print the file {path} | Let me see the contents of {path}; Tell me what {path} says
add_to_cart | Put a product into the cart | product:string:word, quantity:integer:small | Put {quantity} {product} into my cart; Add {quantity} {product} to the cart; I want to buy {quantity} {product}; Cart: {quantity} {product}; Order {quantity} {product} | Please put {product} in my cart, {quantity} of them; I will take {quantity} {product}, add to cart
get_recipe | Get a recipe for a dish | dish:string:word | How do I cook {dish}?; Recipe for {dish}; Give me a recipe for {dish}; I want to make {dish}; How is {dish} made? | Show me how to prepare {dish}; Find out how one cooks {dish}
open_app | Open an app | app:string:word | Open {app}; Start the app {app}; Launch {app}; Open the {app} app; start {app} | Bring up the {app} app; Please run the app {app}
get_distance | Get the distance between two cities | start:string:city, end:string:city | How far is it from {start} to {end}?; Distance from {start} to {end}; What is the distance between {start} and {end}?; How many kilometres from {start} to {end}? | How long is the way from {start} to {end}?; Measure the distance between {start} and {end}
call_contact | Call a person on the phone | contact:string:person | Call {contact}; Phone {contact}; Please call {contact}; Ring {contact}; I want to talk to {contact} | Give {contact} a call; Get {contact} on the phone
add_note | Save a note | note:string:sentence | Note: {note}; Take a note: {note}; Write down: {note}; Save this note: {note}; Note that {note} | Put this in my notes: {note}; Keep a note that {note}
get_holiday | Get the holidays of a month | month:string:month | Which holidays are in {month}?; Holidays in {month}; Are there holidays in {month}?; Show the holidays of {month} | What days off are there in {month}?; Check {month} for holidays
paint_object | Paint an object | object:string:word, colour:string:colour | Paint the {object} {colour}; Make the {object} {colour}; I want the {object} in {colour}; Colour the {object} {colour} | Let the {object} become {colour}; Please give the {object} a {colour} coat
get_current_date | Get the date of today | | What is the date today?; Which day is it today?; Today's date?; What date is it?; date please | Tell me which date we have today; What day do we have?
list_files | List all files | | List all files; Show my files; Which files are there?; ls; What files do I have? | Give me an overview of my files; Let me see all my files
"""

UNFAMILIAR_ROWS = """
fetch_forecast | Fetch the weather forecast for a town | town:string:city | | What is the forecast for {town}?; Fetch the forecast for {town}
hire_bicycle | Hire a bicycle | station:string:city, hours:integer:small | | Hire a bicycle at {station} for {hours} hours; I want to hire a bicycle in {station} for {hours} hours
lookup_plant | Look up a plant | plant:string:word | | Look up the plant {plant}; What do we know about the plant {plant}?
water_lawn | Water the lawn | duration:integer:small | | Water the lawn for {duration} minutes; Give the lawn {duration} minutes of water
reserve_table | Reserve a table in a restaurant | guest:string:person, seats:integer:small | | Reserve a table for {guest} with {seats} seats; Reserve {seats} seats at a table, the guest is {guest}
feed_pet | Feed a pet | pet_name:string:person | | Feed the pet {pet_name}; Please feed {pet_name}
get_exchange_rate | Get the exchange rate of a currency | code:string:currency | | What is the exchange rate of {code}?; Exchange rate for {code}
mute_channel | Mute a channel | channel:string:word | | Mute the channel {channel}; Please mute {channel}
assign_ticket | Assign a ticket to a person | ticket:integer:int, assignee:string:person | | Assign ticket {ticket} to {assignee}; Give ticket {ticket} to {assignee}
scan_barcode | Scan a barcode | barcode:string:code | | Scan the barcode {barcode}; Barcode {barcode}, scan it
cube_number | Raise a number to the third power | value:integer:int | | Raise {value} to the third power; Take the number {value} to the third power
invite_guest | Invite a guest to an event | invitee:string:person, event:string:word | | Invite {invitee} to the event {event}; Please invite {invitee}, the event is {event}
lock_door | Lock a door | door:string:room | | Lock the {door} door; Lock the door of the {door}
compare_prices | Compare the prices of an item | item:string:topic | | Compare prices for {item}; Compare the prices of {item}
rename_document | Rename a document | old_name:string:path, new_name:string:path | | Rename the document {old_name} to {new_name}; The document {old_name} should be renamed to {new_name}
park_car | Park the car on a level | level:integer:small | | Park the car on level {level}; Please park on level {level}
subtract_numbers | Subtract one number from another | minuend:integer:int, subtrahend:integer:int | | Subtract: {minuend} minus {subtrahend}; Take the number {minuend}, subtract {subtrahend}
charge_card | Charge a card | card:string:code, euros:number:int | | Charge the card {card} with {euros} euros; Charge {euros} euros to card {card}
vote_poll | Vote in a poll | option:string:colour | | Vote for {option} in the poll; In the poll my vote is {option}
ship_order | Ship an order to a city | order:integer:int, address:string:city | | Ship order {order} to {address}; Send order {order} off to {address}
get_tide | Get the tide at a harbour | harbour:string:city | | When is the tide at {harbour}?; Tide at {harbour}
restart_service | Restart a service | service:string:word | | Restart the service {service}; Please restart {service}
"""


def _parse(rows: str) -> list[Tool]:
    tools = []
    for row in rows.strip().splitlines():
        name, description, params, asks, held_asks = (cell.strip() for cell in row.split("|"))
        parsed = []
        for param in filter(None, (p.strip() for p in params.split(","))):
            label, type_, kind = param.split(":")
            parsed.append(Param(label.rstrip("?"), type_, kind, label.endswith("?")))
        split = lambda cell: [a.strip() for a in cell.split(";") if a.strip()]  # noqa: E731
        tools.append(Tool(name, description, parsed, split(asks), split(held_asks)))
    return tools


FAMILIAR = _parse(FAMILIAR_ROWS)
UNFAMILIAR = _parse(UNFAMILIAR_ROWS)

assert not {t.name for t in FAMILIAR} & {t.name for t in UNFAMILIAR}
assert not {p.name for t in FAMILIAR for p in t.params} & {p.name for t in UNFAMILIAR for p in t.params}

# Words that stand for a parameter in renamed and invented tools, with the JSON type they suggest.
PARAM_NAMES = {
    "string": """city place location person user name customer title label topic subject keyword query text message note object product
        thing colour room file folder path group team project key region country language song artist book author brand model category tag
        reason comment target source sender owner""".split(),
    "integer": """count number amount quantity size limit id index page year age weight height width length price total level_number score
        minutes seconds days points copies""".split(),
}
VERBS = """get find make create start stop open close check update add remove show send move copy save load print build clean count draw
    fix give hide join keep lift mark name order pack pick pull push read sell sort test turn wash wrap write load_new make_new""".split()
