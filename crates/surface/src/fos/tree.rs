//! Trees of elements, the common form of XML and JSON bodies: [`Element`].

/// A named value. Elements of the same name next to each other are the entries of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// Name of the element.
    pub name: String,
    /// Value of the element.
    pub content: Content,
    /// True for an entry of a list: JSON writes an array even if the list has one entry.
    pub in_list: bool,
}

/// Value of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Text of a leaf.
    Text(String),
    /// Number of a leaf. Decoders return it as text, because XML has no types.
    Number(i128),
    /// Truth value of a leaf. Decoders return it as text.
    Bool(bool),
    /// Elements of a container.
    Children(Vec<Element>),
}

impl Element {
    /// A leaf with a text. Control characters, which XML cannot carry, become `?`.
    pub fn text(name: &str, text: impl AsRef<str>) -> Element {
        let clean = |c: char| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { '?' } else { c };
        Element::new(name, Content::Text(text.as_ref().chars().map(clean).collect()))
    }

    /// A leaf with a number.
    pub fn number(name: &str, number: impl Into<i128>) -> Element {
        Element::new(name, Content::Number(number.into()))
    }

    /// A leaf with a truth value.
    pub fn bool(name: &str, value: bool) -> Element {
        Element::new(name, Content::Bool(value))
    }

    /// A container.
    pub fn container(name: &str, children: Vec<Element>) -> Element {
        Element::new(name, Content::Children(children))
    }

    /// An entry of a list.
    pub fn entry(name: &str, children: Vec<Element>) -> Element {
        Element { in_list: true, ..Element::container(name, children) }
    }

    /// A container with a list of texts.
    pub fn texts<T: AsRef<str>>(name: &str, item: &str, texts: impl IntoIterator<Item = T>) -> Element {
        let items = texts.into_iter().map(|text| Element { in_list: true, ..Element::text(item, text) });
        Element::container(name, items.collect())
    }

    fn new(name: &str, content: Content) -> Element {
        Element { name: name.to_owned(), content, in_list: false }
    }

    /// Elements of a container; none for a leaf.
    pub fn children(&self) -> &[Element] {
        match &self.content {
            Content::Children(children) => children,
            _ => &[],
        }
    }

    /// First child of this name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children().iter().find(|child| child.name == name)
    }

    /// All children of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> + 'a {
        self.children().iter().filter(move |child| child.name == name)
    }

    /// Value of a leaf as text; empty for a container.
    pub fn value(&self) -> String {
        match &self.content {
            Content::Text(text) => text.clone(),
            Content::Number(number) => number.to_string(),
            Content::Bool(value) => value.to_string(),
            Content::Children(_) => String::new(),
        }
    }

    /// Value of a child as text.
    pub fn leaf(&self, name: &str) -> Option<String> {
        self.child(name).map(|child| child.value().trim().to_owned())
    }

    /// Name of a child that stands twice in the element.
    pub fn repeated(&self) -> Option<&str> {
        let children = self.children();
        let again =
            |(index, child): &(usize, &Element)| children[..*index].iter().any(|other| other.name == child.name);
        children.iter().enumerate().find(again).map(|(_, child)| &*child.name)
    }

    /// Returns whether both elements have the same values. The order of elements counts only among
    /// those of one name, because a client may send them in any other order.
    pub fn has_values_of(&self, other: &Element) -> bool {
        let sorted = |element: &Element| {
            let mut children = element.untyped().children().to_vec();
            children.sort_by(|a, b| a.name.cmp(&b.name));
            children
        };
        let (own, others) = (sorted(self), sorted(other));
        let is_same = |(own, other): (&Element, &Element)| own.has_values_of(other);
        let has_same = own.len() == others.len() && own.iter().zip(&others).all(is_same);
        self.name == other.name && self.value().trim() == other.value().trim() && has_same
    }

    /// The element as a decoder returns it: leaves are texts, an empty leaf is an empty container,
    /// and lists are not marked.
    #[must_use]
    pub fn untyped(&self) -> Element {
        let content = match &self.content {
            Content::Children(children) => Content::Children(children.iter().map(Element::untyped).collect()),
            _ if self.value().is_empty() => Content::Children(Vec::new()),
            _ => Content::Text(self.value()),
        };
        Element { name: self.name.clone(), content, in_list: false }
    }
}
