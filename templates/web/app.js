// Every page works without this, and without the script of charts before it.
for (const field of document.querySelectorAll('[data-submits]'))
  field.addEventListener('change', () => field.form.requestSubmit());
// Reloads the page while an action waits for the database, unless someone is typing. Only once, and not
// after a link was followed or a form sent: a reload would cancel that if it takes long.
const again = document.querySelector('[data-reloads]');
let timer;
const reload = () => {
  if (document.querySelector('textarea:focus, details[open] textarea')) timer = setTimeout(reload, 2500);
  else location.replace(again.href);
};
if (again) timer = setTimeout(reload, 2500);
addEventListener('beforeunload', () => clearTimeout(timer));
// Names that start like the word before the cursor: those of the dictionary on this page, and keywords.
const editor = document.querySelector('[data-completes]');
if (editor) {
  const names = [...document.querySelectorAll('.dictionary code')].map(({ textContent }) => textContent);
  const known = [...new Set([...names, ...editor.dataset.completes.split(' ')])];
  const working = document.querySelector('.working');
  editor.form.addEventListener('submit', () => {
    working.hidden = false;
  });
  working.querySelector('button').addEventListener('click', () => {
    window.stop();
    working.hidden = true;
  });
  window.addEventListener('pageshow', () => {
    working.hidden = true;
  });
  // Saves what the editor shows, whether or not it was run.
  const saves = document.querySelector('form.saves');
  saves?.addEventListener('submit', () => {
    saves.elements.sql.value = editor.value;
  });
  const list = document.querySelector('.suggestions');
  const close = () => {
    list.hidden = true;
  };
  const take = (start, text) => {
    const end = editor.selectionStart;
    editor.setRangeText(text, start, end, 'end');
    close();
    editor.focus();
  };
  const suggest = () => {
    const before = editor.value.slice(0, editor.selectionStart);
    const word = /\w*$/.exec(before)[0].toLowerCase();
    const found = word === '' ? [] : known.filter((name) => name.toLowerCase().startsWith(word)).slice(0, 8);
    list.replaceChildren(
      ...found.map((name) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = name;
        button.onclick = () => take(before.length - word.length, name.replace(/\(.*/, '('));
        const item = document.createElement('li');
        item.append(button);
        return item;
      }),
    );
    list.hidden = found.length === 0;
  };
  editor.addEventListener('input', suggest);
  editor.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) editor.form.requestSubmit();
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      suggest();
    }
    if (event.key === 'ArrowDown' && !list.hidden) {
      event.preventDefault();
      list.querySelector('button').focus();
    }
  });
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') {
      close();
      editor.focus();
    }
    if (step === undefined) return;
    event.preventDefault();
    const all = [...list.querySelectorAll('button')];
    (all[all.indexOf(document.activeElement) + step] ?? editor).focus();
  });
}
