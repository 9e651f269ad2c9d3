"""Word lists of the synthetic catalogue: kinds of products, what they are said to be, and what can be chosen.

A kind is one line: query | category path after the department | nouns for the title | option sets | attribute set.
"""

from __future__ import annotations

DEPARTMENTS = {
    "fashion": "Clothing, Shoes & Jewelry",
    "garden": "Home & Kitchen",
    "electronics": "Electronics",
    "beauty": "Beauty & Personal Care",
    "grocery": "Grocery & Gourmet Food",
}

KINDS = {
    "fashion": """
women's shorts | Women › Clothing › Shorts | Running Shorts; Lounge Shorts; Bermuda Shorts | tone size | cloth
women's dresses | Women › Clothing › Dresses | Midi Dress; Sundress; Wrap Dress | tone size | cloth
women's sweaters | Women › Clothing › Sweaters | Pullover Sweater; Knit Cardigan | tone size | cloth
women's leggings | Women › Clothing › Leggings | Yoga Leggings; Workout Tights | tone size | cloth
men's t-shirts | Men › Clothing › Shirts › T-Shirts | Crew Neck T-Shirt; Graphic Tee; Henley Shirt | tone size | cloth
men's dress shirts | Men › Clothing › Shirts › Dress Shirts | Oxford Shirt; Button Down Shirt | tone size fit | cloth
men's jackets & coats | Men › Clothing › Jackets & Coats | Rain Jacket; Bomber Jacket; Parka Coat | tone size | outer
men's pants | Men › Clothing › Pants | Chino Pants; Cargo Pants; Jogger Pants | tone size length | cloth
men's loafers & slip-ons | Men › Shoes › Loafers & Slip-Ons | Driving Loafers; Canvas Slip Ons | tone shoe | shoes
women's sandals | Women › Shoes › Sandals | Wedge Sandals; Slide Sandals; Ankle Strap Sandals | tone shoe | shoes
men's hiking boots | Men › Shoes › Outdoor › Hiking Boots | Trail Boots; Hiking Shoes | tone shoe | shoes
girls' school bags | Luggage › Backpacks › Kids' Backpacks | School Backpack; Rolling Backpack | print | bags
""",
    "garden": """
console tables | Furniture › Living Room Furniture › Console Tables | Entry Table; Sofa Table | tone inches | wood
decorative pillows | Bedding › Decorative Pillows | Pillow Cover; Throw Pillow | print inches | linen
area rugs | Home Décor Products › Area Rugs | Area Rug; Runner Rug; Shag Carpet | print rug | linen
curtain panels | Home Décor Products › Window Treatments › Curtains | Blackout Drapes; Sheer Panel | print drop | linen
bed sheets | Bedding › Sheets & Pillowcases | Sheet Set; Fitted Sheet | tone bed | linen
ottomans | Furniture › Living Room Furniture › Ottomans | Storage Ottoman; Foot Stool | tone | seat
dining chairs | Furniture › Kitchen & Dining Room Furniture › Chairs | Side Chairs; Arm Chair | tone set | seat
floor lamps | Lighting & Ceiling Fans › Lamps › Floor Lamps | Reading Lamp; Arc Lamp | metal bulb | lamp
wall art | Home Décor Products › Wall Art | Canvas Print; Framed Poster | print inches | art
storage baskets | Storage & Organization › Baskets & Bins | Woven Basket; Storage Bin; Hamper | tone pack | bags
shower curtains | Bath › Bathroom Accessories › Shower Curtains | Shower Curtain; Bath Liner | print drop | linen
desks | Furniture › Home Office Furniture › Desks | Writing Desk; Standing Desk; Corner Desk | wood inches | wood
""",
    "electronics": """
bluetooth speakers | Portable Audio & Video › Bluetooth Speakers | Travel Speaker; Party Speaker | tone | audio
headphones | Headphones › Over-Ear Headphones | Wireless Headphones; Studio Headset | tone | audio
phone cases | Cell Phones & Accessories › Cases | Slim Case; Wallet Case; Bumper Case | print phone | case
tablets | Computers & Accessories › Tablets | Android Tablet; Kids Tablet | tone memory | screen
hdmi cables | Accessories & Supplies › Cables › HDMI Cables | HDMI Cord; Extension Cable | feet pack | cable
power strips | Accessories & Supplies › Power Strips | Surge Protector; Charging Station | tone feet | cable
security cameras | Security & Surveillance › Cameras | Dome Camera; Doorbell Camera | tone set | camera
camera tripods | Camera & Photo › Tripods & Monopods | Travel Tripod; Phone Stand | tone | camera
photo backdrops | Camera & Photo › Lighting & Studio › Backgrounds | Vinyl Backdrop; Party Background | print drop | art
screen protectors | Cell Phones & Accessories › Screen Protectors | Glass Protector; Privacy Film | phone pack | case
smartwatch bands | Wearable Technology › Bands | Silicone Band; Mesh Strap | tone band | case
projectors | Television & Video › Projectors | Mini Projector; Home Theater Projector | tone | screen
""",
    "beauty": """
face moisturizers | Skin Care › Face › Creams & Moisturizers | Day Cream; Face Lotion; Night Cream | scent ounce | skin
shampoos | Hair Care › Shampoo & Conditioner | Repair Shampoo; Scalp Shampoo | scent ounce | hair
hair extensions | Hair Care › Hair Extensions › Clip-In | Clip In Hair; Ponytail Piece | shade inch | hair
lipsticks | Makeup › Lips › Lipstick | Matte Lipstick; Lip Stain; Lip Crayon | shade | makeup
eyeshadow | Makeup › Eyes › Eyeshadow | Shadow Palette; Eye Pencil | shade | makeup
nail polish | Foot, Hand & Nail Care › Nail Art & Polish | Gel Polish; Nail Lacquer | shade pack | makeup
toothbrushes | Oral Care › Toothbrushes & Accessories | Bamboo Toothbrush; Travel Toothbrush | tone pack | teeth
body washes | Skin Care › Body › Cleansers › Body Washes | Shower Gel; Bath Soap | scent ounce | skin
makeup brushes | Tools & Accessories › Makeup Brushes & Tools | Brush Set; Powder Brush | tone set | tools
refillable containers | Tools & Accessories › Refillable Containers | Pump Bottles; Cream Jars | tone set | tools
deodorants | Personal Care › Deodorants & Antiperspirants | Roll On Deodorant; Body Spray | scent ounce | skin
hair brushes | Hair Care › Styling Tools › Hair Brushes | Paddle Brush; Detangling Brush | tone | tools
""",
    "grocery": """
granola bars | Snack Foods › Bars › Granola Bars | Oat Bars; Chewy Bars | flavor pack | snack
potato chips | Snack Foods › Chips & Crisps | Kettle Chips; Veggie Crisps | flavor pack | snack
herbal teas | Beverages › Bottled Beverages › Tea › Herbal | Herbal Infusion; Loose Leaf Tea | flavor count | drink
ground coffee | Beverages › Coffee › Ground Coffee | House Roast; Espresso Grounds | roast pack | drink
pasta sauces | Pantry Staples › Sauces › Pasta Sauces | Marinara Sauce; Simmer Sauce | flavor pack | pantry
dried fruit | Produce › Dried Fruits & Raisins | Fruit Slices; Trail Fruit | fruit pack | snack
protein shakes | Beverages › Protein Drinks | Protein Shake; Meal Drink | flavor count | drink
chocolate candies | Snack Foods › Candy & Chocolate | Truffle Box; Chocolate Bites | flavor count | sweet
nut butters | Pantry Staples › Spreads › Nut Butters | Almond Spread; Peanut Spread | flavor pack | pantry
spice blends | Pantry Staples › Herbs & Spices | Seasoning Blend; Dry Rub | flavor pack | pantry
crackers | Snack Foods › Crackers | Seed Crackers; Rice Crackers | flavor pack | snack
gift baskets | Food & Beverage Gifts › Gift Baskets | Gift Box; Snack Basket | occasion count | sweet
""",
}

# Option sets: name = values; a product offers some of them.
OPTIONS = {
    "tone": "color = black; white; navy; grey; olive green; burgundy; khaki; teal; dark blue; rose; beige; light brown",
    "metal": "color = brushed nickel; matte black; antique brass; copper; chrome",
    "wood": "color = walnut; rustic oak; white; espresso; black oak",
    "shade": "color = honey blonde; jet black; chestnut; ruby red; coral pink; nude; plum; mocha; peach; berry",
    "print": "color = floral; marble; geometric; buffalo plaid; ocean waves; sunflower; leopard; stripes; vintage map",
    "size": "size = x-small; small; medium; large; x-large; xx-large; 3x-large",
    "fit": "fit type = slim; regular; big & tall",
    "length": "length = 28 inseam; 30 inseam; 32 inseam; 34 inseam",
    "shoe": "size = 6; 7; 7.5; 8; 8.5; 9; 9.5; 10; 11; 12 wide",
    "inches": 'size = 12x12 inch; 16x24 inch; 18" x 18"; 20x30 inch; 24x36 inch; 40 inch; 48 inch',
    "rug": "size = 2 ft x 3 ft; 3 ft x 5 ft; 4 ft x 6 ft; 5 ft x 8 ft; 8 ft x 10 ft",
    "drop": "size = 36x72 in; 52x63 in; 52x84 in; 60x72 in; 72x72 in; 5x7 ft; 8x10 ft",
    "bed": "size = twin; twin xl; full; queen; king; california king",
    "set": "size = 1 piece; set of 2; set of 4; set of 6; 12 count",
    "pack": "size = 1 count; pack of 2; pack of 3; pack of 6; pack of 12",
    "count": "size = 8 count; 12 count; 16 count; 24 count; 48 count",
    "bulb": "style = without bulb; led bulb; dimmable",
    "phone": "size = model p8; model p8 plus; model p9; model p9 pro; model x2",
    "memory": "capacity = 32gb; 64gb; 128gb",
    "feet": "size = 3 feet; 6 feet; 10 feet; 15 feet; 25 feet",
    "band": "size = 38mm/40mm; 42mm/44mm",
    "scent": "scent = unscented; lavender; citrus; rosemary mint; vanilla; coconut; sea salt",
    "ounce": "size = 2 ounce; 4 ounce (pack of 1); 8 ounce (pack of 1); 8 ounce (pack of 2); 16 ounce (pack of 1)",
    "inch": "size = 14 inch; 16 inch; 18 inch; 20 inch; 24 inch",
    "flavor": "flavor name = original; sea salt; spicy garlic; honey; smoked; lemon; variety pack; dark chocolate",
    "roast": "flavor name = light roast; medium roast; dark roast; decaf; hazelnut",
    "fruit": "flavor name = mango; apple; pineapple; banana; strawberry; peach",
    "occasion": "style = birthday; get well; thank you; holiday; sympathy",
}

# Attribute sets: what a product may be said to be.
ATTRIBUTES = {
    "cloth": "machine wash; hand wash; long sleeve; short sleeve; elastic waist; high waist; slim fit; loose fit; "
    "quick drying; moisture wicking; drawstring closure; button closure; polyester spandex; soft cotton; tummy control",
    "outer": "water resistant; machine wash; fleece lined; zipper closure; wind proof; long sleeve; light weight; "
    "packable hood; regular fit; quick drying",
    "shoes": "non slip; rubber sole; memory foam; arch support; leather sole; slip resistant; open toe; light weight; "
    "ankle strap; water resistant; ethylene vinyl",
    "bags": "water resistant; easy clean; large capacity; space saving; heavy duty; light weight; eco friendly; "
    "carrying handles; machine washable",
    "wood": "easy assemble; solid wood; storage space; space saving; metal legs; engineered wood; living room; "
    "home office; mid century; height adjustable",
    "linen": "machine washable; easy clean; super soft; non slip; fade resistant; living room; dining room; "
    "double sided; printing technology; eco friendly; stain resistant",
    "seat": "faux leather; button tufted; high density foam; easy assemble; storage space; wood frame; living room; "
    "mid century; pu leather; spot clean",
    "lamp": "living room; energy efficient; glass shade; easy assemble; mid century; contemporary style; foot switch; "
    "bronze finish",
    "art": "ready hang; living room; high resolution; light weight; solid wood frame; easy carry; digital photography; "
    "fade resistant; hand painted",
    "audio": "noise cancelling; stereo sound; hands free; long battery life; water proof; fast charging; "
    "high definition; easy carry; voice control",
    "case": "wireless charging; heavy duty; tempered glass; easy install; scratch resistant; shock absorbing; "
    "glass screen; quick release; high definition",
    "screen": "high definition; dual band; quad core; ultra hd; fast charging; parental controls; long battery life; "
    "plug play; bluetooth remote",
    "cable": "gold plated; high speed; heavy duty; fast charging; plug play; ultra hd; usb port; 1080p support",
    "camera": "motion detection; night vision; plug play; carbon fiber; easy carry; quick release; heavy duty; "
    "easy install; wall mounted",
    "skin": "cruelty free; paraben free; sensitive skin; natural ingredients; hyaluronic acid; dry skin; "
    "fragrance free; tea tree; long lasting; alcohol free; coconut oil",
    "hair": "hair growth; dry hair; sulfate free; cruelty free; natural hair; argan oil; heat resistant; "
    "damaged hair; easy apply; synthetic hair",
    "makeup": "cruelty free; long lasting; high pigment; easy apply; non toxic; water proof; nail art; "
    "travel size; highly pigmented; paraben free",
    "teeth": "oral hygiene; bpa free; eco friendly; sensitive teeth; teeth whitening; fresh breath; easy use",
    "tools": "non toxic; leak proof; travel bottles; bpa free; easy clean; eye shadow; rose gold; easy carry; "
    "high quality; hair styling; synthetic bristles",
    "snack": "gluten free; non gmo; low calorie; nut free; dairy free; certified organic; plant based; low sugar; "
    "individually wrapped; artificial colors free; soy free",
    "drink": "caffeine free; sugar free; non dairy; gluten free; usda organic; keto friendly; low carb; fair trade; "
    "rich flavor; high protein",
    "pantry": "certified organic; non gmo; gluten free; low sodium; no artificial flavors; ready use; "
    "kosher certified; dairy free; fat free",
    "sweet": "hand crafted; perfect gift; gluten free; individually wrapped; natural ingredients; valentine day; "
    "birthday party; great gift; kosher certified",
}

PLACES = "living room; dining room; gym workout; daily wear; everyday use; outdoor travel; home office; gift giving"
STYLES = "Classic; Modern; Lightweight; Premium; Vintage; Compact; Cozy; Elegant; Everyday; Deluxe; Casual; Natural"
SYLLABLES = (
    "nor; va; le; bri; ton; mi; ra; ko; sel; fin; ar; du; lo; wen; ta; gri; osh; pel; ya; cor; bex; hal; ine; mar"
)
FILLERS = (
    "Our small team checks every piece before it leaves the warehouse.",
    "A thoughtful present for family and friends on any occasion.",
    "Please look at the size chart and the measurements before you order.",
    "Colors may differ slightly from the pictures because of monitor settings.",
    "If anything is not right, write to us and we will answer within a day.",
    "Designed with care and tested by people who use it every day.",
    "Comes well packed and ready to use straight out of the box.",
    "Goes well with what you already own and keeps its looks for years.",
)
