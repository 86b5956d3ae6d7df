// Every page works without this, and without the script of charts before it.
for (const field of document.querySelectorAll('[data-submits]'))
  field.addEventListener('change', () => field.form.requestSubmit());
// Reloads the page while something is being sent, unless someone is typing. Only once, and not
// after a link was followed or a form sent: a reload would cancel that if it takes long.
const again = document.querySelector('[data-reloads]');
let timer;
const reload = () => {
  if (document.querySelector('textarea:focus, details[open] textarea')) timer = setTimeout(reload, 2500);
  else location.replace(again.href);
};
if (again) timer = setTimeout(reload, 2500);
addEventListener('beforeunload', () => clearTimeout(timer));
